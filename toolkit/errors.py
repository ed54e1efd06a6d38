"""The errors that users see, with the exit code of each error.

    ToolkitError            the base class
    ├── CheckFailed     1   a check failed, or a job failed
    │   ├── Damaged     2   an image or archive is empty, truncated or invalid
    │   └── ProgramFault 1  the program of a job would fail on every node
    ├── BadInput        2   an option or a file is wrong; the message names the file, line and field
    ├── Missing         3   a program, file or machine is missing or unreachable
    │   └── Lost        3   a connection broke or could not be opened; a retry may help
    └── Interrupted   130   the user pressed Ctrl-C, or the process got SIGTERM or SIGHUP

A message is one line that names an input, such as a file, and the fault of this input. ``fix`` is one line
that says what the user can do. ``detail`` may have several lines, such as the end of a log; toolkit prints
``detail`` before the message.
"""

from collections.abc import Sequence


class ToolkitError(Exception):
    """An error that ends a command with a message instead of a traceback."""

    code = 1

    def __init__(self, message: str, *, fix: str = "", detail: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.fix = fix
        self.detail = tuple(detail)


class CheckFailed(ToolkitError):
    """A check (such as a comparison of checksums), a build or a job failed."""

    code = 1


class Damaged(CheckFailed):
    """A file that the user named is damaged. The error is a ``CheckFailed``, because a damaged file fails
    every check.
    """

    code = 2


class ProgramFault(CheckFailed):
    """The program of a job would fail on every node of every cluster."""


class BadInput(ToolkitError):
    """An option or a file is wrong. The message names the file, and the line and field if known."""

    code = 2


class Missing(ToolkitError):
    """A program, service, file or machine that the command needs is missing or unreachable."""

    code = 3


class Lost(Missing):
    """A connection broke or could not be opened. A command that toolkit started on the remote machine may
    still run there.
    """


class Interrupted(ToolkitError):
    """The user or a signal stopped the command. toolkit undid the work, or can resume the work."""

    code = 130
