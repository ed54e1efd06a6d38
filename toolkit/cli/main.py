"""The ``toolkit`` program: run a command. If the command fails, print its error, and exit with the error's
exit status.

``frame/commands.py`` lists the commands.
"""

import contextlib
import gc
import signal
import sys
from types import FrameType
from typing import Any, NoReturn

import click

from toolkit import DISTRIBUTION, __version__
from toolkit.cli.frame.commands import COMMANDS
from toolkit.cli.frame.everywhere import NAMES, flags
from toolkit.cli.frame.help import WholeWordFormatter
from toolkit.cli.frame.lazy import LazyGroup
from toolkit.cli.frame.streams import prepare, report_write_error
from toolkit.errors import Interrupted, ToolkitError

_COLLECT_AFTER = 20_000
"""The number of new objects after which Python's garbage collector runs. Python's default is much lower."""

click.Context.formatter_class = WholeWordFormatter  # click has no other way to set this for all commands


class MainGroup(LazyGroup):
    """The ``toolkit`` program. toolkit exits with status 0 if the program that reads its output, such as
    ``head``, exits before toolkit.
    """

    def make_context(self, *arguments: Any, **more: Any) -> click.Context:  # noqa: ANN401 - click's signature
        with report_write_error():
            return super().make_context(*arguments, **more)

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 - click's signature
        with report_write_error():
            return super().invoke(ctx)


@click.group(
    cls=MainGroup,
    table=COMMANDS,
    params=flags(),
    # Let click keep colours: toolkit's SafeStream removes colours if the output is not a terminal.
    # Without this setting, click would silently remove all escape sequences, not only colours.
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100, "color": True},
)
@click.version_option(
    __version__, package_name=DISTRIBUTION, prog_name="toolkit", message="%(prog)s (%(package)s) %(version)s"
)
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Train neural networks in containers on Slurm clusters.

    Build an image, predict how it will run on a cluster, and launch it there. You can
    give --verbose, --quiet and --debug before or after the command.
    """
    said = ctx.ensure_object(dict)
    for name in NAMES:
        said.setdefault(name, False)


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run the program, and exit with a status from the table in docs/reference/index.md."""
    # Run the garbage collector less often, so that toolkit starts and exits faster.
    # By default, the collector runs many times during imports, and again at exit.
    gc.set_threshold(_COLLECT_AFTER)
    _handle_signals()
    prepare()
    words = sys.argv[1:] if arguments is None else arguments
    said: dict[str, bool] = {}
    try:
        status = cli.main(args=words, prog_name="toolkit", standalone_mode=False, obj=said)
        code = status if isinstance(status, int) else 0
    except click.exceptions.Exit as error:
        code = error.exit_code
    except (click.Abort, KeyboardInterrupt):
        code = _print_error(Interrupted("interrupted"))
    except click.ClickException as error:
        code = _print_call_error(error)
    except Exception as error:  # print a message instead of a traceback
        if said.get("debug"):
            raise
        code = _print_error(error)
    if arguments is None:
        gc.freeze()
    sys.exit(code)


def _print_error(error: Exception) -> int:
    # --help does not need this import.
    from toolkit.cli.frame.faults import as_toolkit_error, print_error

    ours = error if isinstance(error, ToolkitError) else as_toolkit_error(error)
    with contextlib.suppress(OSError):  # the terminal may be closed
        print_error(ours)
    return ours.code


def _print_call_error(error: click.ClickException) -> int:
    from toolkit.cli.frame.faults import of_call

    if (ours := of_call(error)) is not None:
        return _print_error(ours)
    error.show()
    return error.exit_code


def _handle_signals() -> None:
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:  # nohup makes a program ignore SIGHUP
            signal.signal(number, _terminated)


def _terminated(number: int, frame: FrameType | None) -> NoReturn:  # noqa: ARG001 - signal's signature
    # Stop as for Ctrl-C: KeyboardInterrupt runs the finally blocks, which clean up.
    signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt
