"""The process and machine that created something, so that leftovers of a dead process can be removed."""

import os
import socket


def host() -> str:
    """Return this machine's name without its domain."""
    return socket.gethostname().partition(".")[0]


def is_running(pid: int) -> bool:
    """Return whether a process of this machine runs."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
