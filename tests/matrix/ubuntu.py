"""Build the base image of an Ubuntu release: needs root, debootstrap and Ubuntu's keyring.

python -m tests.matrix.ubuntu RELEASE…
"""

import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.errors import Missing
from toolkit.run.command import Command
from toolkit.run.docker.base import local_name
from toolkit.run.docker.engine import connect, find_image
from toolkit.run.local import LocalRunner

if TYPE_CHECKING:
    from docker import DockerClient

_MIRROR = "http://archive.ubuntu.com/ubuntu"
_KEYRING = Path("/usr/share/keyrings/ubuntu-archive-keyring.gpg")
_SCRIPTS = Path("/usr/share/debootstrap/scripts")
_WORDS = ("--variant=minbase", "--components=main,universe", f"--keyring={_KEYRING}")
"""Options of debootstrap; the component ``universe`` has Ubuntu's MPI packages."""
_SECONDS = 900.0


def ensure(client: "DockerClient", release: str) -> None:
    """Build the base image of an Ubuntu release with the name of toolkit's base images, unless it exists.

    Releases up to 20.04 need a tool that sets up some packages before others. debootstrap does this, and
    mmdebstrap does not.

    Raises:
        Missing: if debootstrap or Ubuntu's keyring is missing.
        CheckFailed: if debootstrap fails.
    """
    if find_image(client, local_name(release)) is not None:
        return
    if not _KEYRING.is_file():
        raise Missing(
            f"{_KEYRING} is not there, by which packages of Ubuntu are verified",
            fix="apt-get install ubuntu-keyring, or unpack Ubuntu's package of that name",
        )
    with tempfile.TemporaryDirectory(prefix="toolkit-ubuntu.") as work:
        root, tar = Path(work) / "root", Path(work) / "base.tar"
        _run("debootstrap", *_WORDS, release, str(root), _MIRROR, *_script(release))
        excluded = (f"--exclude=./{folder}/*" for folder in ("dev", "proc", "sys"))
        _run("tar", "-C", str(root), *excluded, "-cf", str(tar), ".")
        client.api.import_image_from_file(
            str(tar), *local_name(release).split(":"), changes=['CMD ["/bin/sh"]', 'LABEL toolkit="base"']
        )


def _script(release: str) -> tuple[str, ...]:
    """Return the name of debootstrap's generic Ubuntu script, if debootstrap is older than this release."""
    return () if (_SCRIPTS / release).exists() else (str(_SCRIPTS / "gutsy"),)


def _run(*words: str) -> None:
    LocalRunner().run(Command(words, timeout=_SECONDS)).require(f"making a base of Ubuntu: {words[0]}")


if __name__ == "__main__":
    for name in sys.argv[1:]:
        ensure(connect(), name)
