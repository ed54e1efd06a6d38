"""The ``toolkit`` program: finds the command, runs it, turns errors into one line and an exit code."""

import contextlib
import signal
import sys
from types import FrameType
from typing import Any, NoReturn

import click

from toolkit import DISTRIBUTION, __version__
from toolkit.cli.frame.commands import COMMANDS
from toolkit.cli.frame.everywhere import NAMES, flags
from toolkit.cli.frame.lazy import LazyGroup
from toolkit.cli.frame.streams import prepare, written
from toolkit.errors import Interrupted, ToolkitError


class MainGroup(LazyGroup):
    """The whole program: a reader of its output that goes away is no fault."""

    def make_context(self, *arguments: Any, **more: Any) -> click.Context:  # noqa: ANN401 - click's signature
        with written():
            return super().make_context(*arguments, **more)

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 - click's signature
        with written():
            return super().invoke(ctx)


@click.group(
    cls=MainGroup,
    table=COMMANDS,
    params=flags(),
    # The door drops colours where nobody sees them; click would drop codes of others without a word.
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100, "color": True},
)
@click.version_option(
    __version__, package_name=DISTRIBUTION, prog_name="toolkit", message="%(prog)s (%(package)s) %(version)s"
)
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Train neural networks in containers on Slurm clusters.

    Build an image, predict how it will run on a cluster, and launch it there. You can also
    give --verbose, --quiet and --debug after the command.
    """
    said = ctx.ensure_object(dict)
    for name in NAMES:
        said.setdefault(name, False)


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run the program and exit with the code of the manual's table."""
    _heed_signals()
    prepare()
    words = sys.argv[1:] if arguments is None else arguments
    said: dict[str, bool] = {}
    try:
        status = cli.main(args=words, prog_name="toolkit", standalone_mode=False, obj=said)
        code = status if isinstance(status, int) else 0
    except click.exceptions.Exit as error:
        code = error.exit_code
    except (click.Abort, KeyboardInterrupt):
        code = _told(Interrupted("interrupted"))
    except click.ClickException as error:
        code = _told_of_call(error)
    except Exception as error:  # the last line of defence for a person
        if said.get("debug"):
            raise
        code = _told(error)
    sys.exit(code)


def _told(error: Exception) -> int:
    # Whoever only asks for help does not read what is said of errors.
    from toolkit.cli.frame.faults import print_error, unforeseen

    ours = error if isinstance(error, ToolkitError) else unforeseen(error)
    with contextlib.suppress(OSError):  # the terminal may have gone, and taken us along
        print_error(ours)
    return ours.code


def _told_of_call(error: click.ClickException) -> int:
    from toolkit.cli.frame.faults import of_call

    if (ours := of_call(error)) is not None:
        return _told(ours)
    error.show()
    return error.exit_code


def _heed_signals() -> None:
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:  # nohup has SIGHUP ignored, and means it
            signal.signal(number, _terminated)


def _terminated(number: int, frame: FrameType | None) -> NoReturn:  # noqa: ARG001 - signal's signature
    # The same clean-up as for Ctrl-C: what was begun is undone by the finally blocks on the way out.
    signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt
