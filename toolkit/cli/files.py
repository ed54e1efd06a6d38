"""Write a result to a file that a person named: whole, or not at all."""

import os
import tempfile
from pathlib import Path

from toolkit.errors import BadInput


def write_whole(path: Path, content: bytes) -> None:
    """Write beside ``path`` and rename.

    Raises:
        BadInput: if the folder is not there or cannot be written to.
    """
    try:
        number, beside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise BadInput(f"{path}: cannot be written: {error.strerror}") from error
    try:
        with os.fdopen(number, "wb") as file:
            file.write(content)
            os.fchmod(file.fileno(), 0o644)
        Path(beside).replace(path)
    except BaseException:
        Path(beside).unlink(missing_ok=True)
        raise
