"""Pack the files that toolkit writes to a new node: configuration, keys, and toolkit's code."""

import hashlib
import io
import tarfile
from pathlib import Path

from toolkit.cluster.access import Secrets
from toolkit.cluster.plan import Layout
from toolkit.data import package, shipped_folder
from toolkit.render import render

CODE = "/opt/toolkit/lib"
"""The symbolic link to toolkit's code on a node. To update the code, toolkit points the link to a new folder.
"""

ACCOUNTS = "/etc/toolkit/accounts"
"""The folder on each node that contains the names of the learners' accounts. On the login node, the folder
also contains the keys of the accounts.
"""

MAKE_ACCOUNTS = f"{CODE}/toolkit/_data/containers/cluster/accounts.sh"
"""The program on a node that creates the learners' accounts."""

_SHIPPED = ("containers", "recipes", "slurm")


def setup_archive(layout: Layout, host: str, secrets: Secrets) -> bytes:
    """Return a tar with the files that turn a container into the node ``host``. Unpack the tar in the
    container's folder ``/``.
    """
    entries = [_file(path, content, 0o644) for path, content in settings(layout, secrets).items()]
    entries += [_file(path, content, 0o600) for path, content in keys(host, secrets).items()]
    return _packed(entries)


def accounts_archive(host: str, secrets: Secrets) -> bytes:
    """Return a tar with the names and keys of the learners' accounts, to unpack in a node's folder ``/``.

    Only the login node gets the keys of the accounts. The login node writes the keys to the home folders, and
    all nodes share these folders.
    """
    names = "".join(f"{name}\n" for name in secrets.by_account())
    entries = [_file(f"{ACCOUNTS}/names", names.encode(), 0o600)]
    for name, pair in secrets.by_account().items() if host == "login" else ():
        entries.append(_file(f"{ACCOUNTS}/{name}/id_ecdsa", pair.private.encode(), 0o600))
        entries.append(_file(f"{ACCOUNTS}/{name}/id_ecdsa.pub", f"{pair.public}\n".encode(), 0o600))
    return _packed(entries)


def code_archive(code: dict[str, bytes]) -> bytes:
    """Return a tar with the files ``code`` of toolkit and the link ``CODE``, to unpack in a node's folder
    ``/``. Each key of ``code`` is a path in the package ``toolkit``.
    """
    folder = code_folder(code)
    entries = [_file(f"{folder}/toolkit/{path}", content, 0o644) for path, content in code.items()]
    link = tarfile.TarInfo(CODE)
    link.type, link.linkname = tarfile.SYMTYPE, folder
    return _packed([*entries, (link, b"")])


def packed_file(path: str, content: bytes) -> bytes:
    """Return a tar with one file that only root can read, to unpack in a node's folder ``/``."""
    return _packed([_file(path, content, 0o600)])


def settings(layout: Layout, secrets: Secrets) -> dict[str, bytes]:
    """Return the files that all users of a node can read, as a table: path on the node → content."""
    everybody = ",".join(layout.hosts)
    return {
        "/etc/slurm/slurm.conf": render("containers", "cluster/slurm.conf.j2", layout.slurm()).encode(),
        "/etc/slurm/cgroup.conf": render("containers", "cluster/cgroup.conf.j2", layout.cgroup()).encode(),
        "/etc/ssh/ssh_known_hosts": f"{everybody} {secrets.host_public}\n".encode(),
    }


def keys(host: str, secrets: Secrets) -> dict[str, bytes]:
    """Return the files that only root can read on the node ``host``, as a table: path on the node → content.
    On the node, ``node.sh`` moves each file to the folder of the service that uses the file.
    """
    contents = {
        "/etc/toolkit/munge.key": secrets.munge,
        "/etc/toolkit/ssh_host_ecdsa_key": secrets.host_private.encode(),
    }
    if host == "login":
        contents["/etc/toolkit/id_ecdsa"] = secrets.user_private.encode()
        contents["/etc/toolkit/id_ecdsa.pub"] = f"{secrets.user_public}\n".encode()
    return contents


def code_files() -> dict[str, bytes]:
    """Return the contents of toolkit's code and data files on this machine. Each key is a path in the
    package ``toolkit``.
    """
    files = _read(package(), Path())
    for kind in _SHIPPED:
        files |= _read(shipped_folder(kind), Path("_data", kind))
    return files


def code_folder(files: dict[str, bytes]) -> str:
    """Return the path of the folder on a node to which toolkit copies ``files``. The folder's name contains
    the digest of the files.
    """
    digest = hashlib.sha256()
    for path in sorted(files):
        digest.update(f"{path}\0{len(files[path])}\0".encode() + files[path])
    return f"/opt/toolkit/code/{digest.hexdigest()[:16]}"


def _read(root: Path, folder: Path) -> dict[str, bytes]:
    return {
        str(folder / path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts and path.relative_to(root).parts[0] != "_data"
    }


def _file(path: str, content: bytes, mode: int) -> tuple[tarfile.TarInfo, bytes]:
    entry = tarfile.TarInfo(path)
    entry.size, entry.mode = len(content), mode
    return entry, content


def _packed(entries: list[tuple[tarfile.TarInfo, bytes]]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for entry, content in entries:
            entry.name = entry.name.lstrip("/")
            tar.addfile(entry, io.BytesIO(content))
    return packed.getvalue()
