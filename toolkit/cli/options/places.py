"""The options that say where a command does its work."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

_F = TypeVar("_F", bound=Callable[..., Any])


def place_options(function: _F) -> _F:
    """Add ``--host``, ``--cluster`` and ``--ssh-config`` to a command."""
    for option in (
        click.option(
            "--ssh-config", type=click.Path(path_type=Path), help="SSH configuration to use, as ssh -F does"
        ),
        click.option("--cluster", metavar="NAME", help="A virtual cluster of this machine"),
        click.option("--host", metavar="SSH", help="A machine over SSH: HOST, USER@HOST or an alias"),
    ):
        function = option(function)
    return function
