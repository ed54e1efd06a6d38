"""Write a result to a file that a person named, and say it in their words where that fails."""

import errno
import os
import time
from pathlib import Path

from toolkit import files
from toolkit.errors import BadInput, CheckFailed
from toolkit.folders import behind_links
from toolkit.report.plain import shown

_READER_SECONDS, _PAUSE = 2.0, 0.02
"""How long a process that was started with this one may take to open a FIFO for reading."""


def write_whole(path: Path, content: bytes) -> None:
    """Write a file whole, or not at all; where a link leads, and into a device or a pipe that is there.

    A FIFO is written to if a process opens it for reading within two seconds; an ordinary ``open`` waits for
    ever.

    Raises:
        BadInput: if the folder is not there or cannot be written to, or if no file is named.
        CheckFailed: if the disk is full.
    """
    if str(path) == "-":
        raise BadInput("-: no name of a file", fix="/dev/stdout is what a program prints")
    try:
        if path.exists() and not path.is_file():
            _write_into(path, content)
        else:
            files.write_whole(behind_links(path), content)
    except OSError as error:
        said = "no process reads it" if error.errno == errno.ENXIO else error.strerror or error
        why = f"{path}: cannot be written: {said}"
        if error.errno in {errno.ENOSPC, errno.EDQUOT}:
            raise CheckFailed(why, fix="make room there, or name a file on another disk") from error
        raise BadInput(why) from error


def _write_into(path: Path, content: bytes) -> None:
    """Write into a device or a pipe; on a terminal, such as ``/dev/stdout``, with the filter of the door."""
    number = _opened(path)
    os.set_blocking(number, True)
    with os.fdopen(number, "wb") as file:
        file.write(shown(content.decode("utf-8", "replace")).encode() if file.isatty() else content)


def _opened(path: Path) -> int:
    """Return the number of a device or pipe that is open for writing.

    Raises:
        OSError: with ENXIO for a FIFO that no process reads.
    """
    deadline = time.monotonic() + _READER_SECONDS
    while True:
        try:
            return os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            if error.errno != errno.ENXIO or time.monotonic() > deadline:
                raise
            time.sleep(_PAUSE)
