"""Exceptions that stop a trainer with one line: a fault, or a request to stop."""


class Trouble(Exception):
    """A fault that the user can fix; ``code`` is the exit status: 1 failed, 2 wrong call, 3 missing."""

    def __init__(self, message: str, code: int = 2) -> None:
        super().__init__(message)
        self.message = message
        self.code = code


class Stopped(Exception):
    """The training was stopped on request and has written a checkpoint; all ranks raise it together."""


STOPPED = 75
"""The exit status for it: EX_TEMPFAIL of sysexits.h, "try again later"."""
