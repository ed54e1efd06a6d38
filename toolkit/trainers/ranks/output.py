"""Make sure that the launcher has read the output of a rank."""

import array
import fcntl
import os
import stat
import termios
import time

_LIMIT = 2.0
_PAUSE = 0.005


def wait_for_reader(descriptor: int, limit: float = _LIMIT) -> None:
    """Wait until another process has read all bytes in a pipe, at most ``limit`` seconds. Return immediately
    if ``descriptor`` is not a pipe.
    """
    if not stat.S_ISFIFO(os.fstat(descriptor).st_mode):
        return
    unread, end = array.array("i", [0]), time.monotonic() + limit
    while time.monotonic() < end:
        fcntl.ioctl(descriptor, termios.FIONREAD, unread)  # pipe(7)
        if not unread[0]:
            return
        time.sleep(_PAUSE)
