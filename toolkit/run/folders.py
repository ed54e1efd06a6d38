"""Folders that a person named: made, and seen to take files, before any work is done for them."""

import tempfile
from pathlib import Path

from toolkit.errors import BadInput

PRIVATE = 0o700


def writable(folder: Path, option: str) -> Path:
    """Return ``folder``, made if it is not there; ``option`` is what a person names it with.

    It is tried: neither the mode of a folder nor the user says whether a disk takes files.

    Raises:
        BadInput: if it cannot be made, or nothing can be written to it.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError as error:
        raise BadInput(
            f"{option}: {folder} cannot be written to: {error.strerror}",
            fix=f"name a folder of yours with {option}",
        ) from error


def folder_mode(mode: int) -> int:
    """Return the mode of a folder that is made for a file of ``mode``; the umask takes its part of it.

    A file that is nobody else's gets such a folder: what is written beside it later, as a job's output and
    metrics, is then nobody else's either.
    """
    return 0o777 if mode & 0o077 else PRIVATE
