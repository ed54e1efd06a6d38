"""Exceptions that stop a trainer with a one-line message: a fault, or a request to stop."""


class Trouble(Exception):
    """A fault that the user can fix; ``code`` is the exit status: 1 failed, 2 wrong options or data, 3
    missing package.
    """

    def __init__(self, message: str, code: int = 2) -> None:
        super().__init__(message)
        self.message = message
        self.code = code


class Stopped(Exception):
    """The training stopped on request after writing a checkpoint; all ranks raise this exception together."""


STOPPED = 75
"""Exit status after :class:`Stopped`: EX_TEMPFAIL of sysexits.h, "try again later"."""
