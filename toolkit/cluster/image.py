"""Build the image of a cluster's nodes, unless Docker already has an image from the same files, base image
and build arguments.
"""

import hashlib
import os
from typing import TYPE_CHECKING

from toolkit.cluster.flavour import default_flavour, flavours
from toolkit.data import shipped_folder
from toolkit.model.progress import Tell
from toolkit.run.docker.builder import RELEASE, ensure_builder, ensure_moved_builder
from toolkit.run.docker.engine import BuildOptions, build_image, find_image, tag_image
from toolkit.run.docker.surroundings import certificates, pip_settings, proxies

if TYPE_CHECKING:
    from docker import DockerClient

NAME = "toolkit-node"

_CONTEXT = "toolkit.context"
"""The image label that contains the digest of the build context."""

_FILES = ("Dockerfile", "node.sh", "toolkit", "profile.sh", "sshd.conf")


def node_image(flavour: str) -> str:
    """Return the name that the node image of a flavour has in the Docker engine."""
    return f"{NAME}:{'latest' if flavour == default_flavour() else flavour}"


def arguments(flavour: str) -> dict[str, str]:
    """Return the build arguments for the node image of a flavour."""
    chosen = flavours()[flavour]
    return {"PACKAGES": " ".join(chosen.packages), "PMIX_PLUGIN": "yes" if chosen.pmix_plugin else "no"}


def ensure_image(client: "DockerClient", flavour: str, tell: Tell) -> str:
    """Return the ID of a flavour's node image. Build the image first if it is missing or outdated."""
    release, name = flavours()[flavour].release, node_image(flavour)
    builder = (
        ensure_builder(client, tell) if release == RELEASE else ensure_moved_builder(client, release, tell)
    )
    base = find_image(client, builder)
    files, kind = context(), arguments(flavour)
    digest = context_digest(files, f"{base.id if base else builder} {sorted(kind.items())}")
    present = find_image(client, name)
    if present is not None and present.labels.get(_CONTEXT) == digest:
        return str(present.id)
    options = BuildOptions(
        memory=2 << 30,
        timeout=1800,
        arguments={"BASE": builder, **kind, **pip_settings(os.environ), **proxies(os.environ)},
        labels={_CONTEXT: digest},
    )
    built = build_image(
        client,
        files | {"certificates.crt": certificates(os.environ) or b""},
        "the cluster's node",
        tell,
        options,
    )
    tag_image(client, built, name)
    return built


def context() -> dict[str, bytes]:
    """Return the contents of the files in the build context, by name."""
    folder = shipped_folder("containers") / "cluster"
    files = {name: (folder / name).read_bytes() for name in _FILES}
    return files | {"requirements.txt": (shipped_folder("requirements") / "run.txt").read_bytes()}


def context_digest(files: dict[str, bytes], base: str) -> str:
    """Return a digest of the build context's ``files`` and of ``base``. The text ``base`` identifies the base
    image and the build arguments.
    """
    digest = hashlib.sha256(base.encode())
    for name in sorted(files):
        digest.update(f"\0{name}\0{len(files[name])}\0".encode() + files[name])
    return digest.hexdigest()
