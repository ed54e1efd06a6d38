"""Folders that a person named, and the cache: seen to take files before any work is done for them."""

import os
import tempfile
from pathlib import Path

from toolkit.data import cache_dir
from toolkit.errors import BadInput, Missing
from toolkit.files import is_dangling, is_there

PRIVATE = 0o700


def writable(folder: Path, option: str) -> Path:
    """Return ``folder``, made if it is not there; ``option`` is what a person names it with.

    It is tried: neither the mode of a folder nor the user says whether a disk takes files.

    Raises:
        BadInput: if it cannot be made, or nothing can be written to it.
    """
    check_folder(folder, option)
    try:
        return _made(folder)
    except OSError as error:
        raise _refused(folder, option, error) from error


def would_take(folder: Path, option: str) -> Path:
    """Return ``folder``, which need not be there; nothing is made, and what it would be made in is tried.

    Raises:
        BadInput: if it could not be made, or nothing can be written to it.
    """
    check_folder(folder, option)
    try:
        there = next((one for one in (folder, *folder.absolute().parents) if one.exists()), folder)
        with tempfile.TemporaryFile(dir=there):
            return folder
    except OSError as error:
        raise _refused(folder, option, error) from error


def check_file(target: Path, option: str, example: str) -> None:
    """Refuse a file to be written that is something else: what is written is renamed to it, a device too.

    ``example`` is what a file in a folder of that name might be called.

    Raises:
        BadInput: if it is there and is no file.
    """
    if target.is_dir():
        raise BadInput(f"{option} {target}: a folder; name the file to write, as in {target / example}")
    if is_there(target, label=option) and not is_dangling(target) and not target.is_file():
        raise BadInput(f"{option} {target}: not a file", fix=f"name a file with {option}")


def in_cache(*below: str) -> Path:
    """Return a folder of the cache, made and tried; whoever did not choose it is told what moves it.

    Raises:
        Missing: if it cannot be made, or nothing can be written to it.
    """
    folder = cache_dir().joinpath(*below)
    try:
        return _made(folder)
    except OSError as error:
        raise Missing(
            f"the cache folder {folder} cannot be written to: {error.strerror}",
            fix="set TOOLKIT_CACHE_DIR to a folder of yours",
        ) from error


def check_folder(folder: Path, option: str) -> None:
    """Refuse a folder to be written to that is something else; nothing is made.

    Raises:
        BadInput: if it is there and is no folder, be it a device.
    """
    try:
        os.lstat(folder)
    except FileNotFoundError:
        return
    except OSError as error:  # its name is too long, or leads through a file
        raise _refused(folder, option, error) from error
    if not folder.is_dir():
        raise BadInput(
            f"{option}: {folder} cannot be written to: it is no folder",
            fix=f"name a folder of yours with {option}",
        )


def _made(folder: Path) -> Path:
    """Return a folder that takes files, made if it is not there."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder):
        return folder


def _refused(folder: Path, option: str, error: OSError) -> BadInput:
    return BadInput(
        f"{option}: {folder} cannot be written to: {error.strerror}",
        fix=f"name a folder of yours with {option}",
    )


def folder_mode(mode: int) -> int:
    """Return the mode of a folder that is made for a file of ``mode``; the umask takes its part of it.

    A file that is nobody else's gets such a folder: what is written beside it later, as a job's output and
    metrics, is then nobody else's either.
    """
    return 0o777 if mode & 0o077 else PRIVATE
