"""Which process of which machine made something, so that a dead one's leavings can be told and removed."""

import os
import socket


def host() -> str:
    """Return this machine's name without its domain."""
    return socket.gethostname().partition(".")[0]


def alive(pid: int) -> bool:
    """Tell whether a process of this machine runs."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
