"""What ends a trainer before its end with one line: a trouble, or the wish of somebody."""


class Trouble(Exception):
    """Something that a person can mend; ``code`` as everywhere: 1 it failed, 2 wrong call, 3 missing."""

    def __init__(self, message: str, code: int = 2) -> None:
        super().__init__(message)
        self.message = message
        self.code = code


class Stopped(Exception):
    """The training was asked to stop and has written a checkpoint; all ranks raise it together."""


STOPPED = 75
"""The exit code for it: EX_TEMPFAIL of sysexits.h, "try again later"."""
