"""Wait for an exclusive lock on a file or folder. Only one process at a time can hold the lock."""

import fcntl
from io import FileIO

from toolkit.model.progress import Tell


def wait_for_lock(lock: int | FileIO, tell: Tell, message: str) -> None:
    """Lock the open file or folder ``lock``. If another process holds the lock, print ``message`` through
    ``tell``, and wait until the other process releases the lock.

    The kernel releases the lock when the process exits or the file is closed.
    """
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        tell.step(message)
        fcntl.flock(lock, fcntl.LOCK_EX)
