"""Files that are written whole, or not at all, and never over a person's own."""

import contextlib
import os
from pathlib import Path

from toolkit.errors import BadInput

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


def require_own(path: Path, mark: str, fix: str) -> None:
    """See that a file may be written again: it is not there, or begins with ``mark``, as those of toolkit do.

    Raises:
        BadInput: if it is a person's own, or cannot be read; ``fix`` says how to keep it.
    """
    if not os.path.lexists(path):
        return
    try:
        with path.open("rb") as file:
            own = file.read(len(mark.encode())) == mark.encode()
    except OSError:
        own = False
    if not own:
        raise BadInput(f"{path} is there, and toolkit did not write it", fix=fix)


def _fill(number: int, content: bytes) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(number, rest) :]
