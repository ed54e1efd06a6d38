"""Lock a file, so that only one process at a time replaces the file with a rename."""

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO


@contextlib.contextmanager
def hold_lock(path: Path, on_wait: Callable[[], None]) -> Iterator[None]:
    """Hold an exclusive lock (flock(2)) on the file at ``path``; wait while another process holds the lock.

    If another process replaces the file during the wait, toolkit locks the new file instead. If the file
    system does not support locks, this function locks nothing. In this case, callers call :func:`identity`
    to detect that another process changed the file.

    Args:
        path: an existing regular file.
        on_wait: toolkit calls this function before it waits for another process.

    Raises:
        OSError: if toolkit cannot open the file.
    """
    while True:
        with _open_lock(path) as file:
            _lock(file, on_wait)
            if os.path.samestat(os.fstat(file.fileno()), path.stat()):
                yield
                return


def identity(path: Path) -> tuple[int, ...]:
    """Return the device, inode, size, mtime and ctime of a file, with the times in nanoseconds.

    If the file changes, at least one of these values changes. The kernel sets ctime at each write, rename and
    change of mode, and no program can set ctime (inode(7)).
    """
    status = path.stat()
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _open_lock(path: Path) -> BinaryIO:
    try:
        # NFS grants an exclusive lock only if the file is open for writing (flock(2)).
        return path.open("r+b")
    except PermissionError:
        return path.open("rb")


def _lock(file: BinaryIO, on_wait: Callable[[], None]) -> None:
    with contextlib.suppress(OSError):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            on_wait()
            fcntl.flock(file, fcntl.LOCK_EX)
