"""Options that select the host or virtual cluster on which a command acts."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from toolkit.cli.options.whole import WholeNumber

_F = TypeVar("_F", bound=Callable[..., Any])


def place_options(function: _F) -> _F:
    """Add ``--host``, ``--cluster`` and ``--ssh-config`` to a command."""
    for option in (
        click.option(
            "--ssh-config",
            type=click.Path(path_type=Path),
            help="SSH configuration file instead of ~/.ssh/config",
        ),
        click.option("--cluster", metavar="NAME", help="Virtual cluster on this machine"),
        click.option("--host", metavar="SSH", help="Host to reach over SSH: HOST, USER@HOST or an SSH alias"),
    ):
        function = option(function)
    return function


def wait_option(default: int = 15) -> Callable[[_F], _F]:
    """Return a decorator that adds ``--wait`` to a command that probes compute nodes."""
    return click.option(
        "--wait",
        type=WholeNumber(1, 600),
        default=default,
        show_default=True,
        metavar="SECONDS",
        help="Seconds to wait for a free compute node",
    )
