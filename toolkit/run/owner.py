"""Identify the toolkit process that created a container or a folder. When this process has exited, a later
toolkit command can remove the container or folder.
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
