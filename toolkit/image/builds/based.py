"""Pull the base image that a lock names into the Docker engine, or build the base image from the lock's
Debian packages."""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.image.builds.emit import base_name
from toolkit.model.lock import Lock
from toolkit.model.progress import Tell
from toolkit.run.docker.base import pull_digest
from toolkit.run.docker.bootstrap import base_files, import_image, rootfs
from toolkit.run.docker.engine import Files, find_image
from toolkit.run.docker.mirrors import Mirrors, of_image
from toolkit.run.folders import in_cache

if TYPE_CHECKING:
    from docker import DockerClient


def ensure_locked_base(
    client: "DockerClient", lock: Lock, files: Mapping[str, Path], tell: Tell, *, fresh: bool = False
) -> str:
    """Return the name of a lock's base image in the Docker engine; pull or build the image if the engine
    lacks it.

    If ``fresh`` is true, toolkit builds the base image again even if the engine has this image.

    Raises:
        Missing: if no registry responds, or the engine cannot build the helper image that contains
            mmdebstrap.
        CheckFailed: if the build of the base image fails.
    """
    if lock.base.published:
        if find_image(client, lock.base.published) is None:
            pull_digest(client, lock.base.published, tell)
        return lock.base.published
    name = base_name(lock)
    if fresh or find_image(client, name) is None:
        with tempfile.TemporaryDirectory(prefix="base.", dir=in_cache()) as work:
            tar = Path(work) / "base.tar"
            write_base(client, lock, files, tar, tell)
            import_image(client, tar, name, tell)
    return name


def mirrors_of(client: "DockerClient", lock: Lock, tell: Tell) -> Mirrors:
    """Return the Debian mirrors in the package sources of a lock's published base image; pull the image if
    necessary.

    The result is empty if toolkit builds the base image.

    Raises:
        Missing: if no registry responds.
    """
    return of_image(client, ensure_locked_base(client, lock, {}, tell)) if lock.base.published else {}


def write_base(
    client: "DockerClient", lock: Lock, files: Mapping[str, Path], target: Path, tell: Tell
) -> None:
    """Write to ``target`` a tar of the root file system that mmdebstrap creates from the lock's packages.

    Raises:
        Missing: if the engine cannot build the helper image that contains mmdebstrap.
        CheckFailed: if mmdebstrap fails.
    """
    base = lock.base
    context = context_of_base(lock, files)
    tell.step(f"Bootstrapping {base.name} from {len(base.packages)} locked packages, in a container")
    rootfs(client, base.release, context, target, tell)


def context_of_base(lock: Lock, files: Mapping[str, Path], *, archive: bool = False) -> Files:
    """Return the files from which a build makes ``base.tar``: a script and the Debian packages of the lock.

    The result is empty for a published base image, which toolkit pulls. If ``archive`` is true, ``base.tar``
    has the format of ``docker save``.
    """
    if lock.base.published:
        return {}
    return base_files(
        lock.base.release,
        lock.base.packages,
        files,
        lock.epoch,
        archive=lock.solution.architecture if archive else "",
    )
