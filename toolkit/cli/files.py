"""Write a result to a file that a person named, and say it in their words where that fails."""

import errno
from pathlib import Path

from toolkit import files
from toolkit.errors import BadInput, CheckFailed


def write_whole(path: Path, content: bytes) -> None:
    """Write a file whole, or not at all.

    Raises:
        BadInput: if the folder is not there or cannot be written to.
        CheckFailed: if the disk is full.
    """
    try:
        files.write_whole(path, content)
    except OSError as error:
        why = f"{path}: cannot be written: {error.strerror or error}"
        if error.errno in {errno.ENOSPC, errno.EDQUOT}:
            raise CheckFailed(why, fix="make room there, or name a file on another disk") from error
        raise BadInput(why) from error
