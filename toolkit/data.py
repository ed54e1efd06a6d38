"""Find the files that toolkit ships, and the user's folders."""

import os
from functools import cache
from pathlib import Path

from toolkit.ambient import require_trusted
from toolkit.errors import BadInput, Missing
from toolkit.folders import at_home, no_file
from toolkit.near import suggest_near

_CALLED = {"recipes": "recipe", "recipes/datasets": "data set"}
"""The word for a file in messages, by the file's folder: a file in ``recipes`` is a ``recipe``."""


@cache
def shipped_folder(kind: str) -> Path:
    """Return the folder ``containers``, ``recipes`` or ``slurm`` of this installation.

    In a wheel, these three folders are inside the package; in a checkout, they are beside the package.
    """
    here = Path(__file__).resolve().parent
    packaged = here / "_data" / kind
    return packaged if packaged.is_dir() else here.parent / kind


def package() -> Path:
    """Return the folder of the installed ``toolkit`` package, which toolkit copies to images and nodes."""
    return Path(__file__).resolve().parent


def checkout() -> Path | None:
    """Return the folder of the checkout from which toolkit runs; ``None`` if toolkit was installed from a
    wheel.
    """
    root = package().parent
    return root if (root / "pyproject.toml").is_file() and shipped_folder("recipes").parent == root else None


def cache_dir() -> Path:
    """Return the folder for downloads and converted files, without creating it.

    By default, the folder is ``toolkit`` in XDG's cache folder (``~/.cache``). The variable
    ``TOOLKIT_CACHE_DIR`` can name another folder, because home folders on clusters are often too small.
    """
    if chosen := os.environ.get("TOOLKIT_CACHE_DIR"):
        return at_home(chosen)
    return _xdg("XDG_CACHE_HOME", ".cache")


def state_dir() -> Path:
    """Return the folder for data about jobs and virtual clusters, without creating it."""
    return _xdg("XDG_STATE_HOME", ".local/state")


def config_dir() -> Path:
    """Return the folder of the user's recipes and settings, without creating it."""
    return _xdg("XDG_CONFIG_HOME", ".config")


def find(kind: str, name: str, suffix: str) -> Path:
    """Return the path of a data file. ``kind`` is the file's folder in toolkit, such as ``recipes``. ``name``
    is a path, or the name of a file without its ending ``suffix``.

    If both the user's folder (:func:`config_dir`) and toolkit have the named file, return the user's file.

    Raises:
        BadInput: if the file does not exist, or other users can change the user's file. If ``name`` is not a
            path, the error for a missing file lists the existing names.
    """
    as_path = Path(name)
    if "/" in name or name.endswith(suffix):
        if as_path.is_file():
            return as_path
        raise BadInput(f"{name}: {no_file(as_path)}")
    for folder in _folders(kind):
        candidate = folder / f"{name}{suffix}"
        if candidate.is_file():
            if folder != shipped_folder(kind):
                require_trusted(candidate, "give the path of the file instead of its name")
            return candidate
    known = names(kind, suffix)
    raise BadInput(
        f"{_CALLED.get(kind, kind)} '{name}': not found{suggest_near(name, known)}; "
        f"choices: {', '.join(known) or 'none are installed'}"
    )


def find_override(kind: str, file_name: str) -> Path | None:
    """Return the user's file if a shipped file has the same name but different content, else ``None``."""
    own, came = config_dir() / kind / file_name, shipped_folder(kind) / file_name
    if not own.is_file() or not came.is_file():
        return None
    return None if own.read_bytes() == came.read_bytes() else own


def names(kind: str, suffix: str) -> list[str]:
    """Return the names that :func:`find` accepts for ``kind`` and ``suffix``: shipped files and the user's
    own files.
    """
    return sorted({f.name.removesuffix(suffix) for d in _folders(kind) for f in d.glob(f"*{suffix}")})


def _folders(kind: str) -> tuple[Path, Path]:
    return config_dir() / kind, shipped_folder(kind)


def _xdg(variable: str, default: str) -> Path:
    base = os.environ.get(variable, "")
    # The XDG Base Directory Specification says that a program must ignore a relative path in an XDG variable.
    root = Path(base) if base.startswith("/") else _home(variable) / default
    return root / "toolkit"


def home() -> Path | None:
    """Return the user's home folder; ``None`` if HOME is not set and this machine has no account
    with the user id.
    """
    try:
        return Path.home()
    except RuntimeError:
        return None


def _home(variable: str) -> Path:
    if found := home():
        return found
    raise Missing("toolkit cannot find your home folder: HOME is not set", fix=f"set HOME, or {variable}")
