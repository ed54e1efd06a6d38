"""Check that output folders and the cache are writable before toolkit starts long work."""

import os
import tempfile
from pathlib import Path

from toolkit.data import cache_dir
from toolkit.errors import BadInput, Missing
from toolkit.files import is_dangling, is_there

PRIVATE = 0o700


def make_writable(folder: Path, option: str) -> Path:
    """Create ``folder`` if it does not exist, check that it is writable, and return it.

    ``option`` is the command-line option with which the user names the folder. The check writes a temporary
    file, because the folder's permissions do not show whether the disk is writable.

    Raises:
        BadInput: if toolkit cannot create the folder or write to it.
    """
    check_folder(folder, option)
    try:
        return _writable_folder(folder)
    except OSError as error:
        raise _refusal(folder, option, error) from error


def would_take(folder: Path, option: str) -> Path:
    """Check that toolkit could create ``folder`` and write to it, and return ``folder``. This function does
    not create the folder. ``option`` is as in :func:`make_writable`.

    Raises:
        BadInput: if toolkit cannot create the folder or write to it.
    """
    check_folder(folder, option)
    try:
        existing = next(
            (parent for parent in (folder, *folder.absolute().parents) if parent.exists()), folder
        )
        with tempfile.TemporaryFile(dir=existing):
            return folder
    except OSError as error:
        raise _refusal(folder, option, error) from error


def check_file(target: Path, option: str, example: str) -> None:
    """Raise an error if an output path exists and is not a regular file. Without this check, toolkit could
    replace a device such as ``/dev/null`` with a file. ``option`` is the command-line option with which the
    user gave the path.

    If the path is a folder, the error message suggests the file name ``example`` in this folder.

    Raises:
        BadInput: if the path exists and is not a regular file.
    """
    if target.is_dir():
        raise BadInput(f"{option} {target}: this path is a folder; name a file, such as {target / example}")
    if is_there(target, label=option) and not is_dangling(target) and not target.is_file():
        raise BadInput(f"{option} {target}: not a regular file", fix=f"with {option}, name a regular file")


def in_cache(*names: str) -> Path:
    """Return a folder in toolkit's cache. Create the folder if it does not exist, and check that it is
    writable.

    ``names`` are the parts of the folder's path in the cache. Without ``names``, the folder is the cache
    itself.

    Raises:
        Missing: if toolkit cannot create the folder or write to it.
    """
    folder = cache_dir().joinpath(*names)
    try:
        return _writable_folder(folder)
    except OSError as error:
        raise Missing(
            f"the cache folder {folder} cannot be written: {error.strerror}",
            fix="set TOOLKIT_CACHE_DIR to a folder that you can write to",
        ) from error


def check_folder(folder: Path, option: str) -> None:
    """Raise an error if an output path exists and is not a folder. This function creates no folder.

    Raises:
        BadInput: if the path exists and is not a folder, such as a device.
    """
    try:
        os.lstat(folder)
    except FileNotFoundError:
        return
    except OSError as error:  # the path is too long, or one of its parents is a file
        raise _refusal(folder, option, error) from error
    if not folder.is_dir():
        raise BadInput(
            f"{option}: {folder} cannot be written: it is not a folder",
            fix=f"with {option}, name a folder that you can write to",
        )


def _writable_folder(folder: Path) -> Path:
    """Create a folder if necessary, write a temporary file to it, and return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder):
        return folder


def _refusal(folder: Path, option: str, error: OSError) -> BadInput:
    return BadInput(
        f"{option}: {folder} cannot be written: {error.strerror}",
        fix=f"with {option}, name a folder that you can write to",
    )


def folder_mode(mode: int) -> int:
    """Return the mode for a new folder that will contain a file of mode ``mode``. The umask still applies to
    the returned mode.

    If only the user has access to the file, only the user gets access to the folder. The folder's mode then
    also protects files that toolkit later writes to the folder, such as a job's output and metrics.
    """
    return 0o777 if mode & 0o077 else PRIVATE
