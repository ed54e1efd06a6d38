"""Get the base image of a lock: pull it into the Docker engine, or build it from the Debian packages in the
lock.
"""

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
    """Return the name of a lock's base image in the Docker engine. If the engine lacks the base image, pull
    or build it.

    ``files`` maps the SHA-256 of each file in the lock to the file's path. If ``fresh`` is true, toolkit does
    not reuse a base image that it built earlier. ``fresh`` has no effect on a published base image.

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
    """Return the Debian mirrors in the apt configuration of a lock's published base image. If the engine
    lacks the base image, pull it.

    The result is empty if the lock has no published base image.

    Raises:
        Missing: if no registry responds.
    """
    return of_image(client, ensure_locked_base(client, lock, {}, tell)) if lock.base.published else {}


def write_base(
    client: "DockerClient", lock: Lock, files: Mapping[str, Path], target: Path, tell: Tell
) -> None:
    """Create the root file system of the base image with mmdebstrap from the packages of the lock's base, and
    write it to ``target`` as a tar.

    Raises:
        Missing: if the engine cannot build the helper image that contains mmdebstrap.
        CheckFailed: if mmdebstrap fails.
    """
    base = lock.base
    context = context_of_base(lock, files)
    tell.step(f"Bootstrapping {base.name} from {len(base.packages)} locked packages, in a container")
    rootfs(client, base.release, context, target, tell)


def context_of_base(lock: Lock, files: Mapping[str, Path], *, archive: bool = False) -> Files:
    """Return the files from which a build makes ``base.tar``: a script, the packages of the base image, and a
    list of the packages' hashes. The keys are paths in the build context.

    The result is empty for a published base image, which the build pulls. If ``archive`` is true,
    ``base.tar`` has the format of ``docker save``; if not, ``base.tar`` is a tar of the root file system.
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
