"""What a person is told of an error, whoever raised it: click, the system, or a fault of ours."""

import errno
import re

import click

from toolkit import DISTRIBUTION
from toolkit.cli.frame.say import say
from toolkit.errors import BadInput, CheckFailed, Missing, ToolkitError
from toolkit.report.plain import as_shown, bounded

_PACKAGES = {"yaml": "pyyaml"}
"""Modules that are not called as the package that brings them."""
_FULL = {errno.ENOSPC, errno.EDQUOT}
_NO_SUCH_NAME = {errno.ENAMETOOLONG, errno.ELOOP, errno.ENOTDIR, errno.EISDIR, errno.ENXIO}
"""What the system says of a path that can be the path of no file."""
_NAME = re.compile(r"[A-Za-z0-9._-]+")
_HELP: tuple[type[click.ClickException], ...] = tuple(
    getattr(click.exceptions, name) for name in ("NoArgsIsHelpError",) if hasattr(click.exceptions, name)
)
"""How click since 8.2 says that a group was called without a command, which is no error of a word."""


def print_error(error: ToolkitError) -> None:
    """Print an error on standard error: details, then `error:` and `hint:`, each of bounded length."""
    details = (part for text in error.detail for part in text.split("\n"))
    say(*(f"    {bounded(as_shown(line))}" for line in details), err=True)
    say(f"error: {bounded(error.message)}", err=True)
    if error.fix:
        say(f"hint: {bounded(error.fix)}", err=True)


def of_call(error: click.ClickException) -> ToolkitError | None:
    """Return what is wrong with the words of a call; ``None`` if help was asked for by giving none."""
    if isinstance(error, _HELP):
        return None
    said = " ".join(error.format_message().split()).rstrip(".")
    ctx = getattr(error, "ctx", None)
    fix = f"{ctx.command_path} --help" if ctx else ""
    return BadInput(said[:1].lower() + said[1:], fix=fix)


def unforeseen(error: Exception) -> ToolkitError:
    """Return an error that nobody foresaw as one of ours."""
    if isinstance(error, ModuleNotFoundError):
        absent = (error.name or "toolkit").partition(".")[0]
        if absent != "toolkit":
            return _not_installed(_PACKAGES.get(absent, absent))
    if isinstance(error, OSError):
        return _of_system(error)
    return ToolkitError(
        f"unexpected {type(error).__name__}: {error}",
        fix="this is a fault of toolkit: run it again with --debug",
    )


def _of_system(error: OSError) -> ToolkitError:
    """Return an error of the system: of a full disk, of a name that cannot be a file's, or another one."""
    where = f"{error.filename}: " if error.filename else ""
    said = f"{where}{error.strerror or error}"
    if error.errno in _FULL:
        return CheckFailed(said, fix="make room on that disk, or use another one; df -h shows how full it is")
    if error.filename and error.errno in _NO_SUCH_NAME:
        return BadInput(said)
    return ToolkitError(said)


def _not_installed(package: str) -> Missing:
    """Say which package is needed, of the release that this toolkit was made with."""
    import importlib.metadata  # not for those who only ask for help

    try:
        needed = importlib.metadata.requires(DISTRIBUTION) or []
    except importlib.metadata.PackageNotFoundError:  # it runs from a checkout
        needed = []
    known = (line.partition(";")[0].strip() for line in needed if "extra ==" not in line)
    wanted = next((line for line in known if _name(line) == package), package)
    return Missing(
        f"the Python package {package}, which this needs, is not installed",
        fix=f"in toolkit's own environment: pip install '{wanted}'",
    )


def _name(requirement: str) -> str:
    found = _NAME.match(requirement)
    return found[0].lower() if found else ""
