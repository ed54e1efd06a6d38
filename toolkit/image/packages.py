"""What packagers wrote down in an image: dpkg's status and Python's dist-info."""

import posixpath
import re
from dataclasses import dataclass

from toolkit.image import tree as files
from toolkit.image.tree import FileTree

_SITES = (
    "/opt/*/venv/lib/python3.*/site-packages",
    "/opt/venv/lib/python3.*/site-packages",
    "/opt/*/lib/python3.*/site-packages",
    "/venv/lib/python3.*/site-packages",
    "/usr/local/lib/python3.*/site-packages",
    "/usr/local/lib/python3.*/dist-packages",
    "/usr/lib/python3/dist-packages",
    "/usr/lib/python3.*/site-packages",
    "/usr/lib64/python3.*/site-packages",
)


@dataclass(frozen=True, slots=True)
class Found:
    """A version and where it was read."""

    version: str
    evidence: str


def debian(tree: FileTree) -> dict[str, str]:
    """Return package → version of every package that dpkg has installed."""
    status = files.text(tree, "/var/lib/dpkg/status") or ""
    rows = re.findall(r"^Package: (\S+)\n(?:(?!^$).*\n)*?^Version: (\S+)", status, re.MULTILINE)
    return dict(rows)


def sites(tree: FileTree) -> tuple[str, ...]:
    """Return the folders with Python packages, virtual environments first."""
    return tuple(dict.fromkeys(path for pattern in _SITES for path in files.glob(tree, pattern)))


def python_package(tree: FileTree, folders: tuple[str, ...], *names: str) -> Found | None:
    """Find the version of the first of ``names`` that is installed."""
    for folder in folders:
        listed = files.names(tree, folder)
        for name in names:
            pattern = re.compile(rf"^{re.escape(name)}-([0-9][^-]*)\.(?:dist|egg)-info$", re.IGNORECASE)
            for entry in listed:
                if found := pattern.match(entry):
                    return Found(found[1], posixpath.join(folder, entry))
    return None
