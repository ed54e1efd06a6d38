"""Check paths and resolve them: system folders, paths below a folder, links and ``~``."""

import os
from functools import lru_cache
from pathlib import Path

_OWN = ("/usr", "/lib", "/lib64")
_LOCAL = ("/usr/local", "/usr/local/lib", "/usr/local/lib64")
"""System folders that an image also has. If a job mounts such a folder of the host, the container no longer
sees the image's folder.
"""


def is_below(path: str, folder: str) -> bool:
    """Return whether a path equals ``folder`` or is below it. The function compares only the texts; it
    accesses no files.
    """
    return f"{path.rstrip('/')}/".startswith(f"{folder.rstrip('/')}/")


@lru_cache(4096)
def is_system(folder: str) -> bool:
    """Return whether a folder is a system folder for libraries, which a container also has."""
    if folder.rstrip("/") in _LOCAL:
        return True
    return any(is_below(folder, own) for own in _OWN) and not is_below(folder, "/usr/local")


def no_file(path: Path) -> str:
    """Return why a path is not a readable file, for the end of a message, such as ``no such file``."""
    return "this is a folder; give a file" if path.is_dir() else "no such file"


def behind_links(target: Path) -> Path:
    """Return the target of a link, so that the caller replaces the target and keeps the link."""
    # Path.resolve raises an error for a link to itself.
    return Path(os.path.realpath(target))


def at_home(path: str | os.PathLike[str]) -> Path:
    """Return a path with ``~`` replaced by the home folder.

    For an unknown user (``~unknown/x``), return the path unchanged, so that the caller reports a missing
    file. ``Path.expanduser`` would raise RuntimeError for such a path.
    """
    return Path(os.path.expanduser(path))  # noqa: PTH111 - see above


def has_file(path: Path) -> bool:
    """Return whether a path is a file; False for a name that is too long."""
    return os.path.isfile(path)  # noqa: PTH113 - Path.is_file raises an error for such a name


def has_folder(path: Path) -> bool:
    """Return whether a path is a folder; False for a name that is too long."""
    return os.path.isdir(path)  # noqa: PTH112 - as above
