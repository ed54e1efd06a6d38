"""The option for machine-readable output."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

_F = TypeVar("_F", bound=Callable[..., Any])


def json_option(text: str = "Print JSON") -> Callable[[_F], _F]:
    """Return a decorator that adds ``--json`` to a command; ``text`` is its help."""
    return click.option("--json", "as_json", is_flag=True, help=text)
