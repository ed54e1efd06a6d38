"""Write a command's result to a file that the user named."""

import errno
import os
import time
from pathlib import Path

from toolkit import files
from toolkit.cli.frame.say import say
from toolkit.errors import BadInput, CheckFailed
from toolkit.folders import behind_links
from toolkit.report.plain import make_visible

_READER_SECONDS, _PAUSE = 2.0, 0.02
"""How long toolkit waits until another process opens a FIFO, and the pause between two tries, in seconds."""


def write_report(path: Path, content: bytes, *, notice: bool = True) -> None:
    """Create the folder of ``path``, and write ``content`` to the file.

    If ``notice`` is true, print the file's path on standard error.

    Raises:
        BadInput, CheckFailed: as in :func:`write_whole`.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, content)
    if notice:
        say(f"wrote {path}", err=True)


def write_whole(path: Path, content: bytes) -> None:
    """Write ``content`` to a file, a device or a pipe. Follow symbolic links.

    toolkit writes a regular file completely or not at all.

    If the file is a FIFO, toolkit waits up to two seconds until another process opens the FIFO for reading.
    An ordinary ``open`` would wait for such a process without a limit.

    Raises:
        BadInput: if toolkit cannot write to the path, if no process reads the FIFO, or if ``path`` is ``-``.
        CheckFailed: if the disk is full.
    """
    if str(path) == "-":
        raise BadInput("-: not the name of a file", fix="use /dev/stdout for standard output")
    try:
        if path.exists() and not path.is_file():
            _write_into(path, content)
        else:
            files.write_whole(behind_links(path), content)
    except OSError as error:
        said = "no process reads this pipe" if error.errno == errno.ENXIO else error.strerror or error
        why = f"{path}: cannot be written: {said}"
        if error.errno in {errno.ENOSPC, errno.EDQUOT}:
            raise CheckFailed(why, fix="delete files on that disk, or give a file on another disk") from error
        raise BadInput(why) from error


def _write_into(path: Path, content: bytes) -> None:
    """Write to a device or a pipe. If the device (such as ``/dev/stdout``) is a terminal, escape control
    characters.
    """
    number = _open_special(path)
    os.set_blocking(number, True)
    with os.fdopen(number, "wb") as file:
        file.write(make_visible(content.decode("utf-8", "replace")).encode() if file.isatty() else content)


def _open_special(path: Path) -> int:
    """Open a device or a pipe for writing, and return its file descriptor.

    Raises:
        OSError: with the error number ENXIO if the path is a FIFO that no process reads.
    """
    deadline = time.monotonic() + _READER_SECONDS
    while True:
        try:
            return os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            if error.errno != errno.ENXIO or time.monotonic() > deadline:
                raise
            time.sleep(_PAUSE)
