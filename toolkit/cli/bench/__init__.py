"""``toolkit bench``: measure how long users wait; one module for each command."""

import click

from toolkit.cli.frame.lazy import LazyGroup

_COMMANDS = {
    "start": ("toolkit.cli.bench.start", "Show how long a job took to its first batch"),
}


@click.group("bench", cls=LazyGroup, table=_COMMANDS)
def command() -> None:
    """Measure jobs."""
