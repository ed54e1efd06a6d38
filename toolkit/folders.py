"""Functions for paths: folders of the distribution, paths below a folder, links and ``~``."""

import os
from functools import lru_cache
from pathlib import Path

_OWN = ("/usr", "/lib", "/lib64")
_LOCAL = ("/usr/local", "/usr/local/lib", "/usr/local/lib64")
"""An image also has these folders, so mounting the host's folders would hide them."""


def is_below(path: str, folder: str) -> bool:
    """Return whether a path is a folder or below it; only the texts are compared."""
    return f"{path.rstrip('/')}/".startswith(f"{folder.rstrip('/')}/")


@lru_cache(4096)
def is_system(folder: str) -> bool:
    """Return whether libraries in a folder are the distribution's: a container also has such folders."""
    if folder.rstrip("/") in _LOCAL:
        return True
    return any(is_below(folder, own) for own in _OWN) and not is_below(folder, "/usr/local")


def no_file(path: Path) -> str:
    """Return why a path is not a readable file; its name precedes the text."""
    return "this is a folder; give a file" if path.is_dir() else "no such file"


def behind_links(target: Path) -> Path:
    """Return the target of a link, so that writing replaces the target and keeps the link."""
    # Path.resolve fails at a link to itself.
    return Path(os.path.realpath(target))


def at_home(path: str | os.PathLike[str]) -> Path:
    """Return a path with the home folder for ``~``.

    A path with an unknown user (``~unknown/x``) stays unchanged, so that the caller reports a missing file.
    ``Path.expanduser`` would raise RuntimeError.
    """
    return Path(os.path.expanduser(path))  # noqa: PTH111 - see above


def has_file(path: Path) -> bool:
    """Return whether a path is a file; false for a name that is too long."""
    return os.path.isfile(path)  # noqa: PTH113 - Path.is_file raises an error for such a name


def has_folder(path: Path) -> bool:
    """Return whether a path is a folder; false for a name that is too long."""
    return os.path.isdir(path)  # noqa: PTH112 - as above
