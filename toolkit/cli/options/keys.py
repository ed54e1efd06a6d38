"""Options for the signature check of an image before the image starts."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

_F = TypeVar("_F", bound=Callable[..., Any])


def key_options(function: _F) -> _F:
    """Add ``--verify-key`` and ``--no-verify`` to a command that starts an image."""
    for option in (
        click.option("--no-verify", is_flag=True, help="Start the image without a check of its signatures"),
        click.option(
            "--verify-key", metavar="FILE", help="Refuse an image that is not signed with a key in FILE"
        ),
    ):
        function = option(function)
    return function
