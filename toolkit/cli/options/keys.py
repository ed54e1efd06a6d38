"""The options that say which key must have signed an image before it starts."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

_F = TypeVar("_F", bound=Callable[..., Any])


def key_options(function: _F) -> _F:
    """Add ``--verify-key`` and ``--no-verify`` to a command that starts an image."""
    for option in (
        click.option(
            "--no-verify", is_flag=True, help="Do not look at the image's signatures; the record says so"
        ),
        click.option(
            "--verify-key", metavar="FILE", help="Refuse an image that no public key in FILE has signed"
        ),
    ):
        function = option(function)
    return function
