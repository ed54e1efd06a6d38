"""Build a base image from the packages that a lock file lists. The build uses no network, and gives the same
base image on every machine.

mmdebstrap runs the scripts of the locked packages as root, and a lock file may come from an untrusted author.
For safety, the build runs in a container without network and with few capabilities, never directly on this
machine.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit import __version__
from toolkit.errors import CheckFailed, Missing
from toolkit.model.lock import LockedFile
from toolkit.model.progress import Tell
from toolkit.render import render
from toolkit.run import clone
from toolkit.run.docker.base import LEFT_OUT
from toolkit.run.docker.builder import ensure_bootstrapper
from toolkit.run.docker.containers import Box, run_once
from toolkit.run.docker.copy_out import CopyOut
from toolkit.run.docker.engine import Files, find_image, pack_context
from toolkit.run.docker.engine_errors import translate_errors
from toolkit.units import format_size

if TYPE_CHECKING:
    from docker import DockerClient

SCRIPT = "make-base.sh"
"""The name of the script that builds ``base.tar`` from the packages in ``base/`` beside the script."""

_SECONDS = 900.0
_MEMORY = 2 << 30
_MOST = 8 << 30
_KEPT_LINES = 12
_FOLDER = "toolkit-base"
_CAPABILITIES = ("CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "MKNOD", "SETGID", "SETUID", "SYS_CHROOT")
"""The Linux capabilities that chroot, dpkg and mknod need in the build (capabilities(7))."""

# This command creates links such as /bin, which must exist before mmdebstrap unpacks the first package.
_MERGED = 'for d in bin sbin lib lib64; do mkdir -p "$1/usr/$d" && ln -s "usr/$d" "$1/$d"; done'

# These commands remove logs and caches that differ between runs, and files that only the build needs.
_CUSTOMIZE = """
set -eu
rm -rf "$1"/var/log/* "$1"/var/cache/* "$1"/var/lib/apt/lists/* "$1"/etc/hostname "$1"/etc/resolv.conf
rm -f "$1"/etc/apt/sources.list.d/* "$1"/var/lib/dpkg/*-old "$1"/etc/*-
mkdir -p "$1"/var/cache/apt/archives/partial "$1"/var/lib/apt/lists/partial
echo "# Everything here is from a lock; to install more, name a mirror of Debian." > "$1"/etc/apt/sources.list
"""

MANNER = "\n".join((_MERGED, _CUSTOMIZE, *LEFT_OUT))
"""The commands and the excluded paths that, together with the packages, determine the contents of a base
image. If this text changes, base images change.
"""


def base_files(
    release: str,
    packages: Sequence[LockedFile],
    files: Mapping[str, Path],
    epoch: int,
    *,
    archive: str = "",
) -> Files:
    """Return the build context of a base image: the build script, the packages and their hashes. The result
    maps the path of each file in the context to the file's content.

    Args:
        release: the codename of the release.
        packages: the packages of the base image.
        files: the path of each package file on this machine, by SHA-256.
        epoch: the modification time of every file in the base image, in seconds since 1970.
        archive: if empty, the script writes a tar of the root file system. Otherwise, the script writes an
            image archive, as ``docker save`` does, and ``archive`` is the image's processor type, such as
            ``x86_64``.
    """
    named = {_file_name(package): package for package in packages}
    script = render(
        "containers",
        f"{SCRIPT}.j2",
        {
            "version": __version__,
            "release": release,
            "epoch": epoch,
            # Name every package. If toolkit named only some, mmdebstrap would select the rest by priority,
            # and a package file and Debian's archive may state different priorities for the same package.
            "names": [package.name for package in packages],
            "left_out": LEFT_OUT,
            "merged": _MERGED,
            "customize": _CUSTOMIZE,
            "archive": bool(archive),
            "architecture": {"x86_64": "amd64", "aarch64": "arm64"}.get(archive, archive),
        },
    )
    sums = "".join(f"{package.sha256}  {name}\n" for name, package in sorted(named.items()))
    return {
        SCRIPT: script.encode(),
        "base/SHA256SUMS": sums.encode(),
        **{f"base/{name}": files[package.sha256] for name, package in named.items()},
    }


def rootfs(client: "DockerClient", release: str, context: Files, target: Path, tell: Tell) -> None:
    """Run the build script of ``context`` in a container, and write the root file system to ``target`` as a
    tar.

    The root file system contains no mirror address, because mirrors differ between machines and the tar must
    be equal on all machines.

    Raises:
        Missing: if no Debian base image is available for the container with mmdebstrap.
        CheckFailed: if mmdebstrap fails.
    """
    box = Box(
        ensure_bootstrapper(client, tell),
        memory=_MEMORY,
        timeout=_SECONDS,
        user="0:0",
        root_archive=pack_context({f"{_FOLDER}/{name}": content for name, content in context.items()}),
        capabilities=_CAPABILITIES,
        scratch=_MEMORY // 2,  # in memory, because dpkg calls fsync for each file, which is slow on a disk
        output_file=CopyOut(f"/{_FOLDER}/base.tar", target, _MOST),
    )
    ran = run_once(client, box, ("sh", f"/{_FOLDER}/{SCRIPT}", "--in-container"), tell.detail)
    if not ran.ok:
        how = f"took longer than {_SECONDS:.0f} s" if ran.timed_out else f"exited with status {ran.status}"
        raise CheckFailed(
            f"building the base image of {release} from the locked packages: mmdebstrap {how}",
            detail=ran.lines[-_KEPT_LINES:],
            fix="read the last lines of the output; if a package causes the failure: "
            "`toolkit image lock RECIPE --upgrade`",
        )


def import_image(client: "DockerClient", tar: Path, name: str, tell: Tell) -> None:
    """Create the image ``name`` in the Docker engine from the tar of a root file system."""
    tell.step(f"Importing {name} into the Docker engine ({format_size(tar.stat().st_size)})")
    with translate_errors(f"importing {name}"):
        client.api.import_image_from_file(
            str(tar), *name.split(":"), changes=['CMD ["/bin/sh"]', 'LABEL toolkit="base"']
        )
    if (image := find_image(client, name)) is None:
        raise Missing(
            f"the Docker engine imported {name} without an error, but has no image with this name",
            fix="check the free space of the engine: `docker system df`",
        )
    clone.record_image(str(image.id), name)


def _file_name(package: LockedFile) -> str:
    """Return the file name of a package in the folder ``base/`` of the build context. The name has ``_`` in
    place of an escape such as ``%3a``, because apt would decode the escape.
    """
    return re.sub(r"%[0-9a-fA-F]{2}", "_", package.file)
