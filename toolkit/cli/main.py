"""The ``toolkit`` program: finds the command, runs it, turns errors into one line and an exit code."""

import contextlib
import io
import os
import select
import signal
import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any, NoReturn

import click

from toolkit import __version__
from toolkit.cli.commands import COMMANDS
from toolkit.cli.everywhere import NAMES, flags
from toolkit.cli.lazy import LazyGroup
from toolkit.errors import Interrupted, ToolkitError


class Program(LazyGroup):
    """The whole program: a reader of its output that goes away is no fault."""

    def make_context(self, *arguments: Any, **more: Any) -> click.Context:  # noqa: ANN401 - click's signature
        with _broken_pipes():
            return super().make_context(*arguments, **more)

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 - click's signature
        with _broken_pipes():
            return super().invoke(ctx)


@click.group(
    cls=Program,
    table=COMMANDS,
    params=flags(),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="toolkit", message="%(prog)s %(version)s")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Train neural networks in containers on Slurm clusters.

    Builds an image, says how it will run on a cluster, and launches it there. --verbose, --quiet and --debug
    may stand behind the command, too.
    """
    said = ctx.ensure_object(dict)
    for name in NAMES:
        said.setdefault(name, False)


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run the program and exit with the code of the manual's table."""
    _heed_signals()
    _replace_what_cannot_be_shown()
    words = sys.argv[1:] if arguments is None else arguments
    said: dict[str, bool] = {}
    try:
        status = cli.main(args=words, prog_name="toolkit", standalone_mode=False, obj=said)
        code = status if isinstance(status, int) else 0
    except click.exceptions.Exit as error:
        code = error.exit_code
    except (click.Abort, KeyboardInterrupt):
        code = _say(Interrupted("interrupted"))
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except Exception as error:  # the last line of defence for a person
        if said.get("debug"):
            raise
        code = _say(error if isinstance(error, ToolkitError) else _unforeseen(error))
    sys.exit(code)


def _heed_signals() -> None:
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:  # nohup has SIGHUP ignored, and means it
            signal.signal(number, _terminated)


def _replace_what_cannot_be_shown() -> None:
    """Let a terminal of another encoding show a question mark for a character that it does not have."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


@contextlib.contextmanager
def _broken_pipes() -> Iterator[None]:
    """Take a broken pipe from click, which would end in 1 without a word whatever pipe it is."""
    try:
        yield
    except BrokenPipeError as error:
        if not _is_unread():
            raise ToolkitError(f"a program that was being written to ended: {error.strerror}") from error
        # Whoever read our output has gone; that is no fault, and nobody is left to tell.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise click.exceptions.Exit(0) from error


def _is_unread() -> bool:
    """Tell whether whoever read our standard output, a pipe, has gone."""
    try:
        polled = select.poll()
        polled.register(sys.stdout.fileno(), 0)
        return any(event & select.POLLERR for _, event in polled.poll(0))
    except (OSError, ValueError, AttributeError):  # closed from the start, or not a file at all
        return False


def _say(error: ToolkitError) -> int:
    with contextlib.suppress(OSError):  # the terminal may have gone, and taken us along
        for line in error.detail:
            click.echo(f"    {line}", err=True)
        click.echo(f"toolkit: {one_line(error.message)}", err=True)
        if error.fix:
            click.echo(f"  fix: {one_line(error.fix)}", err=True)
    return error.code


def one_line(text: str) -> str:
    """Return a text that may quote anything such that it stays on its line and does nothing to a terminal."""
    return "".join(c if c.isprintable() else "?" for c in text)


def _unforeseen(error: Exception) -> ToolkitError:
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        return ToolkitError(f"{where}{error.strerror or error}")
    return ToolkitError(
        f"unexpected {type(error).__name__}: {error}",
        fix="this is a fault of toolkit: run it again with --debug",
    )


def _terminated(number: int, frame: FrameType | None) -> NoReturn:  # noqa: ARG001 - signal's signature
    # The same clean-up as for Ctrl-C: what was begun is undone by the finally blocks on the way out.
    signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt
