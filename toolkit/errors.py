"""The errors that users see, with the exit code of each.

    ToolkitError            the base class
    ├── CheckFailed     1   a check failed, or a job failed
    │   └── Damaged     2   an image or archive is empty, cut short or makes no sense: a bad file
    ├── BadInput        2   the call or a file is wrong: file, line, field, choices
    ├── Missing         3   something needed is absent or unreachable: what, and how to get it
    │   └── Lost        3   a connection broke or could not be opened again; a retry may help
    └── Interrupted   130   the user pressed Ctrl-C, or the process got SIGTERM or SIGHUP

A message is one line with the thing and its fault; ``fix`` is one line that says what to do.
``detail`` may hold more lines, such as the tail of a log, which are printed before the message.
"""

from collections.abc import Sequence


class ToolkitError(Exception):
    """Anything that ends a command with a sentence instead of a traceback."""

    code = 1

    def __init__(self, message: str, *, fix: str = "", detail: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.fix = fix
        self.detail = tuple(detail)


class CheckFailed(ToolkitError):
    """What was checked does not hold: a verdict, a job, a build, a checksum."""

    code = 1


class Damaged(CheckFailed):
    """A given file is damaged; for a command that checks files, a failed check."""

    code = 2


class BadInput(ToolkitError):
    """An option or a file is wrong; the message names file, line and field if there are any."""

    code = 2


class Missing(ToolkitError):
    """A program, a service, a file or a machine that is needed cannot be reached."""

    code = 3


class Lost(Missing):
    """A connection was lost or could not be opened; work on the other side may continue."""


class Interrupted(ToolkitError):
    """Stopped by the user; the work was undone or can be resumed."""

    code = 130
