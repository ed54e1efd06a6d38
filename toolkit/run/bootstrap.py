"""A base image from exactly the packages of a lock; no network, and the same files on every machine."""

import hashlib
import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.errors import Missing
from toolkit.model.lock import LockedFile
from toolkit.model.progress import Tell
from toolkit.run.base import LEFT_OUT
from toolkit.run.command import Command
from toolkit.run.engine import find_image
from toolkit.run.engine_errors import speaking
from toolkit.run.local import LocalRunner

if TYPE_CHECKING:
    from docker import DockerClient

_SECONDS = 900
# Before the first package: one of them does no more than to insist on it.
_MERGED = 'for d in bin sbin lib lib64; do mkdir -p "$1/usr/$d" && ln -s "usr/$d" "$1/$d"; done'

# Goes: what the packages' scripts write that differs between runs, and what only the way here needs.
_CUSTOMIZE = """
set -eu
rm -rf "$1"/var/log/* "$1"/var/cache/* "$1"/var/lib/apt/lists/* "$1"/etc/hostname "$1"/etc/resolv.conf
rm -f "$1"/etc/apt/sources.list.d/* "$1"/var/lib/dpkg/*-old "$1"/etc/*-
mkdir -p "$1"/var/cache/apt/archives/partial "$1"/var/lib/apt/lists/partial
echo "# Everything here is from a lock; to install more, name a mirror of Debian." > "$1"/etc/apt/sources.list
"""

MANNER = "\n".join((_MERGED, _CUSTOMIZE, *LEFT_OUT))
"""What else than its packages decides what is in a base."""


def rootfs(
    release: str,
    packages: Sequence[LockedFile],
    files: Mapping[str, Path],
    epoch: int,
    target: Path,
    tell: Tell,
) -> None:
    """Write the tar of a root file system made of ``packages``, whose ``files`` are here by their SHA-256.

    It names no mirror: which one is within reach differs by machine, and the files are to be the same.

    Raises:
        Missing: if mmdebstrap is not installed.
        CheckFailed: if it fails.
    """
    folder = Path(os.environ.get("TMPDIR") or target.parent)
    with tempfile.TemporaryDirectory(prefix="toolkit-base.", dir=folder) as work:
        Path(work).chmod(0o755)  # mmdebstrap in a user namespace has to read and to write here
        archive = _archive(Path(work) / "archive", release, packages, files)
        hook = Path(work) / "customize.sh"
        hook.write_text(f"#!/bin/sh{_CUSTOMIZE}")
        hook.chmod(0o755)
        tar = Path(work) / "base.tar"
        excluded = [f"--dpkgopt=path-exclude={path}" for path in LEFT_OUT]
        # All by name: the archive may rate them otherwise than the packages themselves do.
        names = ",".join(package.name for package in packages)
        words = (
            *(
                "mmdebstrap",
                f"--include={names}",
                "--variant=minbase",
                "--aptopt=APT::Sandbox::User root",
                *excluded,
            ),
            # The copyright files stay: whoever passes an image on has to be able to show them.
            "--dpkgopt=path-include=/usr/share/doc/*/copyright",
            f"--setup-hook={_MERGED}",
            f'--customize-hook={hook} "$1"',
            *(release, str(tar), f"deb [trusted=yes] copy://{archive} ./"),
        )
        env = {"SOURCE_DATE_EPOCH": str(epoch), "TZ": "UTC", "LC_ALL": "C.UTF-8"}
        command = Command(words, env=env, timeout=_SECONDS)
        try:
            done = LocalRunner().stream(command, tell.detail)
        except Missing as error:
            raise Missing(
                "mmdebstrap, which makes the base image from the locked packages, is not installed",
                fix="sudo apt-get install mmdebstrap (Debian or Ubuntu), or lock where a registry answers",
            ) from error
        done.require(f"bootstrapping {release} from the locked packages", "see its last lines, and try again")
        tar.chmod(0o644)
        tar.replace(target)


def imported(client: "DockerClient", tar: Path, name: str, tell: Tell) -> None:
    """Make an image of a root file system."""
    tell.step(f"Importing {name} into the Docker engine ({tar.stat().st_size >> 20} MiB)")
    with speaking(f"importing {name}"):
        client.api.import_image_from_file(
            str(tar), *name.split(":"), changes=['CMD ["/bin/sh"]', 'LABEL toolkit="base"']
        )
    if find_image(client, name) is None:
        raise Missing(f"the Docker engine took {name} but does not have it", fix="docker system df")


def _archive(folder: Path, release: str, packages: Sequence[LockedFile], files: Mapping[str, Path]) -> Path:
    """Lay the packages out as a repository of their own, with the index that a package manager reads."""
    folder.mkdir()
    stanzas = []
    for package in sorted(packages, key=lambda p: p.file):
        name = re.sub(r"%[0-9a-fA-F]{2}", "_", package.file)
        (folder / name).write_bytes(files[package.sha256].read_bytes())
        command = Command(("dpkg-deb", "--field", str(folder / name)), timeout=60)
        control = LocalRunner().run(command).require(f"reading {package.file}").text.strip()
        stanzas.append(f"{control}\nFilename: ./{name}\nSize: {package.size}\nSHA256: {package.sha256}\n")
    index = "\n".join(stanzas).encode()
    (folder / "Packages").write_bytes(index)
    # Without a codename none of them counts as one of the release.
    digest = hashlib.sha256(index).hexdigest()
    (folder / "Release").write_text(
        f"Suite: {release}\nCodename: {release}\nSHA256:\n {digest} {len(index)} Packages\n"
    )
    return folder
