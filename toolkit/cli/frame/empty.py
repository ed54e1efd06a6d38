"""Refuse options and arguments whose value is empty, as that of ``--verify-key "$KEY"`` without a KEY."""

from collections.abc import Mapping
from typing import Any

import click
from click.core import ParameterSource

from toolkit.errors import BadInput

_FIX = "is a shell variable not set? Give a value, or leave it out"


def refusing_empty(command: click.Command) -> click.Command:
    """Let a command, and those below it, refuse an empty value of any option or argument that takes a text.

    What another program is to get (``nargs=-1`` of raw words) may be empty.
    """
    for param in command.params:
        if not (isinstance(param, click.Argument) and param.type is click.UNPROCESSED):
            _refuse(param)
    for inner in getattr(command, "commands", {}).values():
        refusing_empty(inner)
    return command


def _refuse(param: click.Parameter) -> None:
    """Look at the words before click makes values of them: an empty path is the same as ``.`` afterwards."""
    consume = param.consume_value
    if getattr(consume, "refuses_empty", False):  # a command may be listed by two groups, or asked for twice
        return

    def consumed(ctx: click.Context, opts: Mapping[str, Any]) -> tuple[Any, ParameterSource]:
        value, source = consume(ctx, opts)
        words = value if isinstance(value, (list, tuple)) else (value,)
        if source is ParameterSource.COMMANDLINE and any(isinstance(w, str) and not w for w in words):
            raise BadInput(f"{_name(param)}: the value is empty", fix=_FIX)
        return value, source

    consumed.refuses_empty = True  # type: ignore[attr-defined]  # a mark on the function
    param.consume_value = consumed  # type: ignore[method-assign]  # click has no hook before conversion


def _name(param: click.Parameter) -> str:
    if isinstance(param, click.Option):
        return max(param.opts, key=len)
    return param.human_readable_name
