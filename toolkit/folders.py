"""Check whether paths are in certain folders, and resolve links and ``~`` in paths."""

import os
from functools import lru_cache
from pathlib import Path

_OWN = ("/usr", "/lib", "/lib64")
_LOCAL = ("/usr/local", "/usr/local/lib", "/usr/local/lib64")
"""``/usr/local`` and its subfolders that every image has. If a job mounts one of these folders of the host,
the mount hides the image's folder.
"""


def is_below(path: str, folder: str) -> bool:
    """Return whether a path equals ``folder`` or is below it. The function compares only the texts; it
    accesses no files.
    """
    return f"{path.rstrip('/')}/".startswith(f"{folder.rstrip('/')}/")


@lru_cache(4096)
def is_system(folder: str) -> bool:
    """Return whether a folder is a system folder, which every image has: ``/usr``, ``/lib``, ``/lib64``
    or a folder below them. In ``/usr/local``, only ``/usr/local`` itself, ``lib`` and ``lib64`` count.
    """
    if folder.rstrip("/") in _LOCAL:
        return True
    return any(is_below(folder, own) for own in _OWN) and not is_below(folder, "/usr/local")


def no_file(path: Path) -> str:
    """Return the end of the error message for a path that is not a file, such as ``no such file``."""
    return "this is a folder; give a file" if path.is_dir() else "no such file"


def behind_links(target: Path) -> Path:
    """Return the file to which a link points, so that the caller replaces this file and keeps the link. For
    a path without links, return its absolute form.
    """
    # Path.resolve raises an error for a link to itself.
    return Path(os.path.realpath(target))


def at_home(path: str | os.PathLike[str]) -> Path:
    """Return a path with a leading ``~`` replaced by the home folder.

    For an unknown user (``~unknown/x``), return the path unchanged; the caller then reports that the file is
    missing. ``Path.expanduser`` would raise RuntimeError for such a path.
    """
    return Path(os.path.expanduser(path))  # noqa: PTH111 - see above


def has_file(path: Path) -> bool:
    """Return whether a path is an existing file; False if a name in the path is too long."""
    return os.path.isfile(path)  # noqa: PTH113 - Path.is_file raises an error for such a name


def has_folder(path: Path) -> bool:
    """Return whether a path is an existing folder; False if a name in the path is too long."""
    return os.path.isdir(path)  # noqa: PTH112 - Path.is_dir raises an error for such a name
