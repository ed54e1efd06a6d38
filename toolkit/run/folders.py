"""Folders that a person named: made, and seen to take files, before any work is done for them."""

import tempfile
from pathlib import Path

from toolkit.errors import BadInput


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
