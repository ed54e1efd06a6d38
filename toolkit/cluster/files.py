"""The files that a node gets when it is created: configuration, keys, and toolkit itself."""

import hashlib
import io
import tarfile
from pathlib import Path

from toolkit.cluster.access import Secrets
from toolkit.cluster.plan import Layout
from toolkit.data import package, shipped_folder
from toolkit.render import render

CODE = "/opt/toolkit/lib"
"""Where the nodes' Python looks for toolkit: a link to one version, so that all files change at once."""

ACCOUNTS = "/etc/toolkit/accounts"
"""The list of a class's accounts on a node."""

MAKE_ACCOUNTS = f"{CODE}/toolkit/_data/containers/cluster/accounts.sh"
"""The program on a node that creates the accounts."""

_SHIPPED = ("containers", "recipes", "slurm")


def setup_archive(layout: Layout, host: str, secrets: Secrets) -> bytes:
    """Return the tar that makes a bare container the node ``host``; unpacked at its root."""
    entries = [_file(path, content, 0o644) for path, content in settings(layout, secrets).items()]
    entries += [_file(path, content, 0o600) for path, content in keys(host, secrets).items()]
    return _packed(entries)


def accounts_archive(host: str, secrets: Secrets) -> bytes:
    """Return the tar with a class's accounts for a node; unpacked at its root.

    The keys of the accounts are only on the login node, whose homes all nodes share.
    """
    names = "".join(f"{name}\n" for name in secrets.by_account())
    entries = [_file(f"{ACCOUNTS}/names", names.encode(), 0o600)]
    for name, pair in secrets.by_account().items() if host == "login" else ():
        entries.append(_file(f"{ACCOUNTS}/{name}/id_ecdsa", pair.private.encode(), 0o600))
        entries.append(_file(f"{ACCOUNTS}/{name}/id_ecdsa.pub", f"{pair.public}\n".encode(), 0o600))
    return _packed(entries)


def code_archive(code: dict[str, bytes]) -> bytes:
    """Return the tar that gives a node this version of toolkit; unpacked at its root."""
    folder = code_folder(code)
    entries = [_file(f"{folder}/toolkit/{path}", content, 0o644) for path, content in code.items()]
    link = tarfile.TarInfo(CODE)
    link.type, link.linkname = tarfile.SYMTYPE, folder
    return _packed([*entries, (link, b"")])


def packed_file(path: str, content: bytes) -> bytes:
    """Return the tar of one file that only root can read; unpacked at a node's root."""
    return _packed([_file(path, content, 0o600)])


def settings(layout: Layout, secrets: Secrets) -> dict[str, bytes]:
    """Return the files that all users on the node can read."""
    everybody = ",".join(layout.hosts)
    return {
        "/etc/slurm/slurm.conf": render("containers", "cluster/slurm.conf.j2", layout.slurm()).encode(),
        "/etc/slurm/cgroup.conf": render("containers", "cluster/cgroup.conf.j2", layout.cgroup()).encode(),
        "/etc/ssh/ssh_known_hosts": f"{everybody} {secrets.host_public}\n".encode(),
    }


def keys(host: str, secrets: Secrets) -> dict[str, bytes]:
    """Return the files that only root can read; ``node.sh`` puts each where its service needs it."""
    given = {
        "/etc/toolkit/munge.key": secrets.munge,
        "/etc/toolkit/ssh_host_ecdsa_key": secrets.host_private.encode(),
    }
    if host == "login":
        given["/etc/toolkit/id_ecdsa"] = secrets.user_private.encode()
        given["/etc/toolkit/id_ecdsa.pub"] = f"{secrets.user_public}\n".encode()
    return given


def code_files() -> dict[str, bytes]:
    """Return toolkit as it is installed here, including data: path within the package → content."""
    files = _read(package(), Path())
    for kind in _SHIPPED:
        files |= _read(shipped_folder(kind), Path("_data", kind))
    return files


def code_folder(files: dict[str, bytes]) -> str:
    """Return the folder of exactly this code on a node."""
    digest = hashlib.sha256()
    for path in sorted(files):
        digest.update(f"{path}\0{len(files[path])}\0".encode() + files[path])
    return f"/opt/toolkit/code/{digest.hexdigest()[:16]}"


def _read(root: Path, below: Path) -> dict[str, bytes]:
    return {
        str(below / path.relative_to(root)): path.read_bytes()
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
