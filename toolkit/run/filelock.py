"""Take turns at work that only one process may do at a time."""

import fcntl
from io import FileIO

from toolkit.model.progress import Tell


def wait_for_lock(lock: int | FileIO, tell: Tell, wait: str) -> None:
    """Lock an open file or folder for this process, and print ``wait`` while another process has it.

    The lock ends with the process, or when the file is closed.
    """
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        tell.step(wait)
        fcntl.flock(lock, fcntl.LOCK_EX)
