"""Lock a file that its writers replace by a rename, so that one writer works at a time."""

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO


@contextlib.contextmanager
def hold_lock(path: Path, on_wait: Callable[[], None]) -> Iterator[None]:
    """Hold the lock (flock(2)) of the file that is at ``path`` now; wait for another holder.

    If a file was replaced meanwhile, its lock is useless, so the new file is locked instead. Some network
    file systems have no locks. On such systems nothing is locked, and :func:`identity` detects a change.

    Args:
        path: an existing regular file.
        on_wait: called before the wait if another process holds the lock.

    Raises:
        OSError: if the file cannot be opened.
    """
    while True:
        with _open_lock(path) as file:
            _lock(file, on_wait)
            if os.path.samestat(os.fstat(file.fileno()), path.stat()):
                yield
                return


def identity(path: Path) -> tuple[int, ...]:
    """Return values that change if a file is replaced or written: device, inode, size, times of change (ns).

    The kernel sets the last of these times at each write, rename and change of mode; no program can set it
    (inode(7)).
    """
    found = path.stat()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _open_lock(path: Path) -> BinaryIO:
    try:
        return path.open("r+b")  # NFS grants an exclusive lock only to a file open for writing (flock(2)).
    except PermissionError:
        return path.open("rb")


def _lock(file: BinaryIO, on_wait: Callable[[], None]) -> None:
    with contextlib.suppress(OSError):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            on_wait()
            fcntl.flock(file, fcntl.LOCK_EX)
