"""List the packages in an image from dpkg's status file and Python's dist-info folders."""

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass

from toolkit.image.files import tree as files
from toolkit.image.files.tree import FileTree

_MOST_TEXT = 8 << 20
"""Maximum number of bytes that toolkit reads of dpkg's status file, enough for about 8,000 packages. Python
may need four times as much memory for the decoded text.
"""
_BLOCK = 1 << 16
"""Maximum number of bytes of one package's entry in the status file."""
_LONGEST = 100
_MOST = 1 << 16
"""Maximum number of bytes of os-release."""


@dataclass(frozen=True, slots=True)
class PackageVersion:
    """A version, and the file or text from which toolkit read it."""

    version: str
    evidence: str


@dataclass(frozen=True, slots=True)
class UnknownVersion:
    """The reason why toolkit does not know the version of a package or library in the image."""

    reason: str


def debian(tree: FileTree) -> dict[str, str]:
    """Return the version of each installed Debian package, by the package's name."""
    versions: dict[str, str] = {}
    for block in _blocks(files.read(tree, "/var/lib/dpkg/status", _MOST_TEXT) or b""):
        # Skip lines that start with a space, because such a line continues the field in the line above.
        fields = dict(row.split(": ", 1) for row in block.splitlines() if ": " in row and row[0] != " ")
        name, version = fields.get("Package", ""), fields.get("Version", "")
        if name and 0 < len(version) <= _LONGEST and fields.get("Status", "").endswith(" installed"):
            versions[name] = version
    return versions


def _blocks(content: bytes) -> Iterator[str]:
    """Split a text at its empty lines, and yield the first ``_BLOCK`` bytes of each block, decoded."""
    at = 0
    while at < len(content):
        end = content.find(b"\n\n", at)
        end = len(content) if end < 0 else end
        yield content[at : min(end, at + _BLOCK)].decode("utf-8", "replace")
        at = end + 2


def python_package(tree: FileTree, folders: tuple[str, ...], *names: str) -> PackageVersion | None:
    """Return the version of the first package that toolkit finds in ``folders``, or None.

    ``folders`` are folders such as ``site-packages``. In each folder, toolkit looks for the packages in the
    order of ``names``.
    """
    for folder in folders:
        listed = files.names(tree, folder)
        for name in names:
            pattern = re.compile(
                rf"^{re.escape(name)}-([0-9][0-9A-Za-z.+!_]*)\.(?:dist|egg)-info$", re.IGNORECASE
            )
            for entry in listed:
                if match := pattern.match(entry):
                    return PackageVersion(match[1], posixpath.join(folder, entry))
    return None


def read_distribution(tree: FileTree) -> PackageVersion | UnknownVersion | None:
    """Return the distribution from os-release(5), such as ``debian 12 (bookworm)``.

    The result is None if the image has no file ``os-release``.
    """
    content = files.text(tree, "/etc/os-release", _MOST) or files.text(tree, "/usr/lib/os-release", _MOST)
    if content is None:
        return None
    values = dict(re.findall(r'^(\w+)="?([^"\n]*)"?$', content, re.MULTILINE))
    shown = " ".join(w for w in (values.get("ID"), values.get("VERSION_ID")) if w)
    if code := values.get("VERSION_CODENAME"):
        shown += f" ({code})"
    return (
        PackageVersion(shown, f"/etc/os-release: {shown}")
        if shown
        else UnknownVersion("/etc/os-release has no ID")
    )
