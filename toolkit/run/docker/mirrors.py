"""Find Debian mirrors in the environment, in this machine's package sources, and in an image."""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from toolkit.run.docker.containers import Box, run_once

if TYPE_CHECKING:
    from docker import DockerClient

Archive = Literal["debian", "debian-security"]
Mirrors = Mapping[Archive, tuple[str, ...]]
"""The mirrors' addresses for each archive, without a trailing slash, in the order in which apt tries them."""

MIRROR = "TOOLKIT_DEBIAN_MIRROR"
"""The environment variable with the address of the Debian mirror to use. The address may also name a snapshot
in Debian's snapshot archive.
"""

_SOURCES = ("/etc/apt/sources.list", "/etc/apt/sources.list.d")
_ADDRESS = re.compile(r"https?://\S+?/(?P<archive>debian(?:-security)?)(?:/(?=\s|$)|(?=\s|$))")
_CAT = f"cat {_SOURCES[0]} {_SOURCES[1]}/* 2> /dev/null; true"


def read_mirrors(text: str) -> Mirrors:
    """Return the mirrors in the text of ``sources.list`` files, in one-line or deb822 format."""
    addresses: dict[Archive, dict[str, None]] = {"debian": {}, "debian-security": {}}
    for line in text.splitlines():
        for match in _ADDRESS.finditer(line.partition("#")[0]):
            archive: Archive = "debian" if match["archive"] == "debian" else "debian-security"
            addresses[archive][match[0].rstrip("/")] = None
    return {archive: tuple(addresses) for archive, addresses in addresses.items()}


def chosen_mirror() -> Mirrors:
    """Return the mirror in ``TOOLKIT_DEBIAN_MIRROR``, and the usual address of Debian's security archive on
    this mirror. If the variable is not set, return no mirrors.
    """
    mirror = os.environ.get(MIRROR, "").rstrip("/")
    return {"debian": (mirror,), "debian-security": (f"{mirror}-security",)} if mirror else {}


def of_machine() -> Mirrors:
    """Return the Debian mirror in ``TOOLKIT_DEBIAN_MIRROR``, followed by the mirrors in this machine's
    package sources.
    """
    return join_mirrors(chosen_mirror(), read_mirrors("\n".join(_texts())))


def of_image(client: "DockerClient", image: str) -> Mirrors:
    """Return the Debian mirrors in the package sources of an image."""
    return read_mirrors("\n".join(run_once(client, Box(image), ("sh", "-c", _CAT)).lines))


def join_mirrors(*lists: Mirrors) -> Mirrors:
    """Join several lists of mirrors in the order of the arguments, without duplicates."""
    archives: tuple[Archive, ...] = ("debian", "debian-security")
    return {a: tuple(dict.fromkeys(m for mirrors in lists for m in mirrors.get(a, ()))) for a in archives}


def _texts() -> Iterator[str]:
    for place in map(Path, _SOURCES):
        for file in sorted(place.iterdir()) if place.is_dir() else [place]:
            if file.is_file():
                yield file.read_text("utf-8", errors="replace")
