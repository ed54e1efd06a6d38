"""Translate errors of click, of the operating system and of toolkit into messages."""

import errno
import re

import click

from toolkit import DISTRIBUTION
from toolkit.cli.dashes import FIX
from toolkit.cli.frame.say import say
from toolkit.cli.frame.styles import width_of_errors
from toolkit.cli.frame.usage import message_of
from toolkit.errors import BadInput, CheckFailed, Missing, ToolkitError
from toolkit.report.lines import wrap_hanging
from toolkit.report.plain import bound_message, make_line_visible

_PACKAGES = {"yaml": "pyyaml"}
"""For each Python module whose package has another name on PyPI: the name of the package."""
_FULL = {errno.ENOSPC, errno.EDQUOT}
_NO_SUCH_NAME = {errno.ENAMETOOLONG, errno.ELOOP, errno.ENOTDIR, errno.EISDIR, errno.ENXIO}
"""Error numbers (``errno``) for a path that toolkit cannot open as a file."""
_NAME = re.compile(r"[A-Za-z0-9._-]+")
_HELP: tuple[type[click.ClickException], ...] = tuple(
    getattr(click.exceptions, name) for name in ("NoArgsIsHelpError",) if hasattr(click.exceptions, name)
)
"""Exceptions that click 8.2 and later raise if the user gives a group, such as ``toolkit image``, without a
command. toolkit then prints the help of the group.
"""


def print_error(error: ToolkitError) -> None:
    """Print an error on standard error: details, then lines with `error:` and `hint:`.

    toolkit shortens lines of more than 2,000 characters. On a terminal, toolkit wraps a long `error:` line
    between words. A hint stays on one line, because users copy the command in the hint.
    """
    details = (part for text in error.detail for part in text.split("\n"))
    say(*(f"    {bound_message(make_line_visible(line))}" for line in details), err=True)
    say(*wrap_hanging("error: ", bound_message(error.message), width_of_errors()), err=True)
    if error.fix:
        say(f"hint: {bound_message(error.fix)}", err=True)


def of_call(error: click.ClickException) -> ToolkitError | None:
    """Return toolkit's error for a wrong command line. Return ``None`` if click's error only prints help."""
    if isinstance(error, _HELP):
        return None
    ctx = getattr(error, "ctx", None)
    fix = (ctx.meta.get(FIX) or f"see `{ctx.command_path} --help`") if ctx else ""
    return BadInput(message_of(error), fix=fix)


def as_toolkit_error(error: Exception) -> ToolkitError:
    """Return the error to print for an exception that no command caught."""
    if isinstance(error, ModuleNotFoundError):
        absent = (error.name or "toolkit").partition(".")[0]
        if absent != "toolkit":
            return _not_installed(_PACKAGES.get(absent, absent))
    if isinstance(error, OSError):
        return _of_system(error)
    return ToolkitError(
        f"unexpected {type(error).__name__}: {error}",
        fix="this is a bug in toolkit: run the command again with `--debug`, and report the output",
    )


def _of_system(error: OSError) -> ToolkitError:
    """Convert an error of the operating system to an error of toolkit. Add a hint for a full disk."""
    where = f"{error.filename}: " if error.filename else ""
    said = f"{where}{error.strerror or error}"
    if error.errno in _FULL:
        return CheckFailed(said, fix="delete files on that disk (see `df -h`), or use another disk")
    if error.filename and error.errno in _NO_SUCH_NAME:
        return BadInput(said)
    return ToolkitError(said)


def _not_installed(package: str) -> Missing:
    """Return the error for a missing Python package; the hint names the release that toolkit needs."""
    import importlib.metadata  # slow import, which --help does not need

    try:
        needed = importlib.metadata.requires(DISTRIBUTION) or []
    except importlib.metadata.PackageNotFoundError:  # toolkit runs from a checkout
        needed = []
    known = (line.partition(";")[0].strip() for line in needed if "extra ==" not in line)
    wanted = next((line for line in known if _name(line) == package), package)
    return Missing(
        f"the Python package {package} is not installed; this command needs it",
        fix=f"install the package in toolkit's Python environment: `pip install '{wanted}'`",
    )


def _name(requirement: str) -> str:
    found = _NAME.match(requirement)
    return found[0].lower() if found else ""
