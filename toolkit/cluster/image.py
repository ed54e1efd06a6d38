"""The image that every node is made from; built when the engine has none of these files."""

import hashlib
import os
from importlib import metadata
from typing import TYPE_CHECKING

from toolkit.data import shipped
from toolkit.errors import Missing
from toolkit.model.progress import Tell
from toolkit.run.builder import ensure_builder
from toolkit.run.engine import BuildOptions, build_image, find_image, tag_image
from toolkit.run.surroundings import certificates, pip_settings, proxies

if TYPE_CHECKING:
    from docker import DockerClient

NAME = "toolkit-node:latest"

_CONTEXT = "toolkit.context"
"""Label of an image with the digest of what it was built from."""

_FILES = ("Dockerfile", "node.sh", "toolkit", "profile.sh", "cgroup.conf", "sshd.conf")


def ensure_image(client: "DockerClient", tell: Tell) -> str:
    """Return the id of the node image, built first if the engine's is of other files."""
    builder = ensure_builder(client, tell)
    base = find_image(client, builder)
    files = context()
    digest = context_digest(files, str(base.id) if base else builder)
    present = find_image(client, NAME)
    if present is not None and present.labels.get(_CONTEXT) == digest:
        return str(present.id)
    options = BuildOptions(
        memory=2 << 30,
        timeout=1800,
        arguments={"BASE": builder, **pip_settings(os.environ), **proxies(os.environ)},
        labels={_CONTEXT: digest},
    )
    built = build_image(
        client,
        files | {"certificates.crt": certificates(os.environ) or b""},
        "the cluster's node",
        tell,
        options,
    )
    tag_image(client, built, NAME)
    return built


def context() -> dict[str, bytes]:
    """Return the files that the image is built from."""
    folder = shipped("containers") / "cluster"
    files = {name: (folder / name).read_bytes() for name in _FILES}
    return files | {"requirements.txt": "\n".join((*requirements(), "")).encode()}


def context_digest(files: dict[str, bytes], base: str) -> str:
    """Return a name for exactly these files on exactly this base."""
    digest = hashlib.sha256(base.encode())
    for name in sorted(files):
        digest.update(f"\0{name}\0{len(files[name])}\0".encode() + files[name])
    return digest.hexdigest()


def requirements() -> list[str]:
    """Return what toolkit needs at run time, as its own metadata says; extras left out.

    Raises:
        Missing: if toolkit is run without having been installed.
    """
    try:
        needed = metadata.requires("toolkit") or []
    except metadata.PackageNotFoundError as error:
        raise Missing(
            "toolkit is not installed here, so nobody knows what it needs on the nodes", fix="pip install ."
        ) from error
    return sorted(line for line in needed if "extra ==" not in line)
