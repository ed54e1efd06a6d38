"""List the Debian package files that a set of packages needs; apt in a container resolves dependencies."""

import email.utils
import os
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING
from urllib.parse import unquote

import msgspec

from toolkit.errors import CheckFailed, Missing
from toolkit.model.lock import LockedFile
from toolkit.model.progress import Tell
from toolkit.run.docker.containers import Box, RunResult, run_once
from toolkit.run.docker.mirrors import MIRROR, Mirrors, of_machine
from toolkit.run.docker.surroundings import proxies
from toolkit.run.web.http import without_login

if TYPE_CHECKING:
    from docker import DockerClient

_SECONDS = 300.0
_MEMORY = 2 << 30

_URI = re.compile(r"'(?P<url>[^']+)' (?P<file>\S+\.deb) (?P<size>\d+) SHA256:(?P<sha256>[0-9a-f]{64})")
_ARCHIVE = re.compile(r"(?P<root>https?://[^/]+/.*?(?P<archive>debian(?:-security)?))/(?P<path>pool/.*)")

# Each argument of this script is one package set: ``NAME=PACKAGE PACKAGE...``.
# If FROM_NOTHING is set, apt reads an empty status file (dpkg's list of installed packages) instead of the
# image's status file. Then apt also lists packages that the image already has.
_ASK = r"""
set -eu
if [ -n "$SOURCES" ]; then
    rm -rf /etc/apt/sources.list.d/*
    printf '%s\n' "$SOURCES" > /etc/apt/sources.list
fi
# If ARCHITECTURE is empty, apt uses the architectures of the image.
if [ -n "$ARCHITECTURE" ]; then
    foreign='APT::Architecture "%s";\nAPT::Architectures "%s";\n'
    # shellcheck disable=SC2059
    printf "$foreign" "$ARCHITECTURE" "$ARCHITECTURE" > /etc/apt/apt.conf.d/zz-foreign
fi
apt-get -q -o Acquire::Languages=none -o Acquire::Retries=3 update
: > /tmp/empty
options="-o Acquire::ForceHash=SHA256 -o APT::Install-Recommends=false"
if [ -n "$FROM_NOTHING" ]; then options="$options -o Dir::State::status=/tmp/empty"; fi
for group; do
    echo "@set ${group%%=*}"
    # shellcheck disable=SC2086
    (set -f; apt-get -qq $options --print-uris install ${group#*=})
done
sed -n 's/^Date: /@date /p' /var/lib/apt/lists/*Release
"""

ESSENTIAL_PACKAGES = ("?essential", "?priority(required)", "apt", "usrmerge-")
"""The packages of a minimal Debian system, as patterns of apt.

``usrmerge-`` excludes the package usrmerge, which needs Perl. apt then selects usr-is-merged instead.
"""


DEBIAN_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "ppc64le": "ppc64el"}
"""Debian's name of each processor type; the keys are the names that ``uname -m`` prints."""


class PackageFiles(msgspec.Struct, frozen=True, kw_only=True):
    """The Debian package files to download.

    A package set is a group of packages that toolkit installs together. ``sets`` maps the name of each
    package set to the package files of this set, including dependencies.
    ``date`` is the time of the newest package index, in seconds since 1970.
    """

    sets: dict[str, tuple[LockedFile, ...]]
    date: int


def files_of(
    client: "DockerClient",
    image: str,
    release: str,
    sets: Mapping[str, Sequence[str]],
    tell: Tell,
    *,
    from_nothing: bool,
    architecture: str = "",
) -> PackageFiles:
    """Return the package files that each package set needs; apt in ``image`` resolves the dependencies.

    ``sets`` maps the name of each package set to the names of its packages. If ``from_nothing`` is true, apt
    assumes that no package is installed, and uses this machine's mirrors for the Debian release ``release``,
    such as ``bookworm``. If ``from_nothing`` is false, apt uses the package sources of the image, and omits
    packages that are already in the image. ``architecture`` is the processor type of the packages, such as
    ``x86_64``; an empty string means the image's processor type.

    Raises:
        CheckFailed: if a package does not exist, or no mirror answers.
        Missing: if ``from_nothing`` is true, and no Debian mirror is configured on this machine.
    """
    groups = tuple(f"{name}={' '.join(words)}" for name, words in sets.items())
    box = Box(
        image,
        env={
            **proxies(os.environ),
            "SOURCES": sources_list(release, of_machine()) if from_nothing else "",
            "FROM_NOTHING": "1" if from_nothing else "",
            "ARCHITECTURE": DEBIAN_ARCHITECTURES.get(architecture, architecture),
        },
        memory=_MEMORY,
        timeout=_SECONDS,
        network="host",
    )
    ran = run_once(
        client, box, ("sh", "-c", _ASK, "sh", *groups), lambda line: tell.detail(without_login(line))
    )
    if not ran.ok:
        raise _refusal(ran, release)
    return read(ran.lines, of_machine())


def sources_list(release: str, mirrors: Mirrors) -> str:
    """Return the text of ``sources.list`` for a Debian release, with the areas main, contrib and non-free.

    The text includes security updates if ``mirrors`` has a mirror of Debian's security archive.

    Raises:
        Missing: if ``mirrors`` has no mirror of Debian's main archive.
    """
    debian, security = (mirrors.get(archive, ()) for archive in ("debian", "debian-security"))
    if not debian:
        raise Missing(
            f"no Debian mirror for {release} is configured on this machine",
            fix=f"set {MIRROR}=URL; URL is a mirror that this machine can reach",
        )
    areas = "main contrib non-free"
    lines = [f"deb {debian[0]} {suite} {areas}" for suite in (release, f"{release}-updates")]
    return "\n".join((*lines, *(f"deb {where} {release}-security {areas}" for where in security[:1])))


def read(lines: Sequence[str], mirrors: Mirrors) -> PackageFiles:
    """Return the package files in ``lines``, the output of the script ``_ASK``. ``mirrors`` is as in
    :func:`origin_of`.
    """
    sets: dict[str, list[LockedFile]] = {}
    current: list[LockedFile] = []
    dates = [0]
    for line in lines:
        if line.startswith("@set "):
            current = sets.setdefault(line.removeprefix("@set "), [])
        elif line.startswith("@date "):
            dates.append(int(email.utils.parsedate_to_datetime(line.removeprefix("@date ")).timestamp()))
        elif match := _URI.match(line):
            current.append(_file(match, mirrors))
    return PackageFiles(
        sets={name: tuple(sorted(files, key=lambda f: f.file)) for name, files in sets.items()},
        date=max(dates),
    )


def origin_of(url: str, mirrors: Mirrors) -> str:
    """Return a package's address in Debian's archive without the mirror, such as ``debian:pool/main/x.deb``.
    Return an address outside Debian's archive unchanged.

    The function recognises each mirror whose address ends in ``debian`` or ``debian-security``, and each
    mirror in ``mirrors``. The mirrors in ``mirrors`` may have any address.
    """
    for archive, addresses in mirrors.items():
        for address in addresses:
            path = url.removeprefix(f"{address}/")
            if path != url and path.startswith("pool/"):
                return f"{archive}:{path}"
    match = _ARCHIVE.match(url)
    return f"{match['archive']}:{match['path']}" if match else url


def _file(match: re.Match[str], mirrors: Mirrors) -> LockedFile:
    name, version, _ = match["file"].removesuffix(".deb").split("_", 2)
    return LockedFile(
        name=name,
        version=unquote(version),
        file=match["file"],
        origin=origin_of(match["url"], mirrors),
        sha256=match["sha256"],
        size=int(match["size"]),
    )


def _refusal(result: RunResult, release: str) -> CheckFailed:
    how = f"took longer than {_SECONDS:.0f} s" if result.timed_out else f"exited with status {result.status}"
    lines = [without_login(line) for line in result.lines]
    errors = [line for line in lines if line.startswith(("E:", "W:", "Err:"))]
    return CheckFailed(
        f"apt, which resolves packages for Debian {release}, {how}",
        detail=(errors or lines)[-8:],
        fix=f"check that the Debian mirror is reachable; to use another mirror, set {MIRROR}=URL",
    )
