"""The exceptions that stop a trainer with a one-line message: a fault, or a request to stop."""


class Trouble(Exception):
    """A fault that the user can fix. The exit status ``code`` is 1 for a failure, 2 for wrong options or
    data, and 3 for a missing package.
    """

    def __init__(self, message: str, code: int = 2) -> None:
        super().__init__(message)
        self.message = message
        self.code = code


class Stopped(Exception):
    """The training stopped on request after writing a checkpoint. All ranks raise ``Stopped`` at the same
    point of the training.
    """


STOPPED = 75
"""The exit status after :class:`Stopped`: EX_TEMPFAIL of sysexits.h, "try again later"."""
