"""Hold a lock on a file that its writers replace by a rename, so that one of them works at a time."""

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO


@contextlib.contextmanager
def held(path: Path, on_wait: Callable[[], None]) -> Iterator[None]:
    """Hold the lock (flock(2)) of the file that is at ``path`` now; another holder is waited for.

    A file that was replaced meanwhile has a lock that nobody else asks for, so the new one is locked instead.
    Some network file systems have no locks. Nothing is held there, and :func:`identity` tells of a change.

    Args:
        path: a regular file that is there.
        on_wait: called before the wait if another process holds the lock.

    Raises:
        OSError: if the file cannot be opened.
    """
    while True:
        with _opened(path) as file:
            _lock(file, on_wait)
            if os.path.samestat(os.fstat(file.fileno()), path.stat()):
                yield
                return


def identity(path: Path) -> tuple[int, ...]:
    """Return what differs if a file was replaced or written: device, inode, size, times of change (ns).

    The last one is set by the kernel at each write, rename and change of mode, and by no program (inode(7)).
    """
    found = path.stat()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _opened(path: Path) -> BinaryIO:
    try:
        return path.open("r+b")  # NFS gives an exclusive lock to a writer only (flock(2))
    except PermissionError:
        return path.open("rb")


def _lock(file: BinaryIO, on_wait: Callable[[], None]) -> None:
    with contextlib.suppress(OSError):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            on_wait()
            fcntl.flock(file, fcntl.LOCK_EX)
