"""Identify the toolkit process that created a container or a folder, so that toolkit can remove the
containers and folders of dead processes.
"""

import os
import socket


def host() -> str:
    """Return this machine's host name without its domain."""
    return socket.gethostname().partition(".")[0]


def is_running(pid: int) -> bool:
    """Return whether a process with this process ID exists on this machine."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
