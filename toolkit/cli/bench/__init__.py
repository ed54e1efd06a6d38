"""``toolkit bench``: measure how long jobs take to start. Each subcommand has its own module."""

import click

from toolkit.cli.frame.lazy import LazyGroup

_COMMANDS = {
    "start": ("toolkit.cli.bench.start", "Show how long a job took until its first training batch"),
}


@click.group("bench", cls=LazyGroup, table=_COMMANDS)
def command() -> None:
    """Measure how long jobs take to start."""
