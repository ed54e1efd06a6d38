"""Files that are written whole, or not at all."""

import contextlib
import os
from pathlib import Path

_SHOWN = 50
"""Letters of a name that are in the temporary one: both have to fit into 255 bytes."""


def write_whole(path: Path, content: bytes, mode: int | None = None) -> None:
    """Write beside ``path`` and rename, so that a reader sees the old file or the new one.

    Without a ``mode`` the umask decides, as for any new file; with one, nobody whom it keeps out can read the
    file at any time. Whatever fails, the old file stays and nothing is left beside it.

    Raises:
        OSError: if the folder is not there or takes no file, or the disk is full.
    """
    beside = path.parent / f".{path.name[:_SHOWN]}.{os.urandom(6).hex()}.part"
    try:
        number = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666 if mode is None else 0o600)
        # Closed before it is renamed: a network file system may say only then that the disk is full.
        try:
            _fill(number, content)
            if mode is not None:
                os.fchmod(number, mode)
        finally:
            os.close(number)
        beside.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):  # it may never have come to be
            beside.unlink()
        raise


def _fill(number: int, content: bytes) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(number, rest) :]
