"""Folders that the user named, and the cache: checked to be writable before any work for them."""

import os
import tempfile
from pathlib import Path

from toolkit.data import cache_dir
from toolkit.errors import BadInput, Missing
from toolkit.files import is_dangling, is_there

PRIVATE = 0o700


def make_writable(folder: Path, option: str) -> Path:
    """Return ``folder``, created if necessary; ``option`` is the option that names it.

    This function writes a test file, because neither the mode of a folder nor the user shows whether a disk
    is writable.

    Raises:
        BadInput: if the folder cannot be created, or is not writable.
    """
    check_folder(folder, option)
    try:
        return _writable_folder(folder)
    except OSError as error:
        raise _refusal(folder, option, error) from error


def would_take(folder: Path, option: str) -> Path:
    """Return ``folder``, which may not exist; nothing is created, and its parent is checked.

    Raises:
        BadInput: if the file could not be created, or is not writable.
    """
    check_folder(folder, option)
    try:
        there = next((one for one in (folder, *folder.absolute().parents) if one.exists()), folder)
        with tempfile.TemporaryFile(dir=there):
            return folder
    except OSError as error:
        raise _refusal(folder, option, error) from error


def check_file(target: Path, option: str, example: str) -> None:
    """Refuse an output path that is not a regular file: the output replaces it by a rename, even a device.

    ``example`` is an example of a file name in a folder of that name.

    Raises:
        BadInput: if the path exists and is not a file.
    """
    if target.is_dir():
        raise BadInput(f"{option} {target}: a folder; name the file to write, as in {target / example}")
    if is_there(target, label=option) and not is_dangling(target) and not target.is_file():
        raise BadInput(f"{option} {target}: not a file", fix=f"name a file with {option}")


def in_cache(*below: str) -> Path:
    """Return a checked folder of the cache; the error says which variable moves the cache.

    Raises:
        Missing: if the folder cannot be created, or is not writable.
    """
    folder = cache_dir().joinpath(*below)
    try:
        return _writable_folder(folder)
    except OSError as error:
        raise Missing(
            f"the cache folder {folder} cannot be written: {error.strerror}",
            fix="set TOOLKIT_CACHE_DIR to your own folder",
        ) from error


def check_folder(folder: Path, option: str) -> None:
    """Refuse an output path that is not a folder; nothing is created.

    Raises:
        BadInput: if the path exists and is not a folder, such as a device.
    """
    try:
        os.lstat(folder)
    except FileNotFoundError:
        return
    except OSError as error:  # the path is too long, or leads through a file
        raise _refusal(folder, option, error) from error
    if not folder.is_dir():
        raise BadInput(
            f"{option}: {folder} cannot be written: it is not a folder",
            fix=f"name your own folder with {option}",
        )


def _writable_folder(folder: Path) -> Path:
    """Return a writable folder, created if necessary."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder):
        return folder


def _refusal(folder: Path, option: str, error: OSError) -> BadInput:
    return BadInput(
        f"{option}: {folder} cannot be written: {error.strerror}",
        fix=f"name your own folder with {option}",
    )


def folder_mode(mode: int) -> int:
    """Return the mode of a folder that is created for a file of ``mode``; the umask applies.

    A private file gets a private folder: files that are written beside it later, such as a job's output and
    metrics, are then also private.
    """
    return 0o777 if mode & 0o077 else PRIVATE
