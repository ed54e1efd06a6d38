"""The packages that packagers recorded in an image: dpkg's status and Python's dist-info."""

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass

from toolkit.image.files import tree as files
from toolkit.image.files.tree import FileTree

_MOST_TEXT = 8 << 20
"""The most bytes of a list: some 8,000 packages. Decoded as text, the bytes may need four times as much
memory."""
_BLOCK = 1 << 16
"""Limit on the bytes that are read of one package's entry."""
_LONGEST = 100
_MOST = 1 << 16
"""The most bytes of os-release that are read."""


@dataclass(frozen=True, slots=True)
class PackageVersion:
    """A version and its source."""

    version: str
    evidence: str


@dataclass(frozen=True, slots=True)
class Untold:
    """Software that is in the image and does not show its version."""

    reason: str


def debian(tree: FileTree) -> dict[str, str]:
    """Return package → version of every package that dpkg has installed, without removed ones."""
    found: dict[str, str] = {}
    for block in _blocks(files.read(tree, "/var/lib/dpkg/status", _MOST_TEXT) or b""):
        # A line that begins with a space continues the field above it.
        fields = dict(row.split(": ", 1) for row in block.splitlines() if ": " in row and row[0] != " ")
        name, version = fields.get("Package", ""), fields.get("Version", "")
        if name and 0 < len(version) <= _LONGEST and fields.get("Status", "").endswith(" installed"):
            found[name] = version
    return found


def _blocks(content: bytes) -> Iterator[str]:
    """Yield the text between empty lines, one block at a time."""
    at = 0
    while at < len(content):
        end = content.find(b"\n\n", at)
        end = len(content) if end < 0 else end
        yield content[at : min(end, at + _BLOCK)].decode("utf-8", "replace")
        at = end + 2


def python_package(tree: FileTree, folders: tuple[str, ...], *names: str) -> PackageVersion | None:
    """Return the first of ``names`` that is installed."""
    for folder in folders:
        listed = files.names(tree, folder)
        for name in names:
            pattern = re.compile(
                rf"^{re.escape(name)}-([0-9][0-9A-Za-z.+!_]*)\.(?:dist|egg)-info$", re.IGNORECASE
            )
            for entry in listed:
                if found := pattern.match(entry):
                    return PackageVersion(found[1], posixpath.join(folder, entry))
    return None


def read_distribution(tree: FileTree) -> PackageVersion | Untold | None:
    """Return the distribution of an image, from os-release(5); ``None`` if the image has no such file."""
    content = files.text(tree, "/etc/os-release", _MOST) or files.text(tree, "/usr/lib/os-release", _MOST)
    if content is None:
        return None
    values = dict(re.findall(r'^(\w+)="?([^"\n]*)"?$', content, re.MULTILINE))
    shown = " ".join(w for w in (values.get("ID"), values.get("VERSION_ID")) if w)
    if code := values.get("VERSION_CODENAME"):
        shown += f" ({code})"
    return (
        PackageVersion(shown, f"/etc/os-release: {shown}") if shown else Untold("/etc/os-release has no ID")
    )
