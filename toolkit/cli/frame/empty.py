"""Reject empty values of options and arguments, such as ``--verify-key "$KEY"`` with an unset KEY."""

from collections.abc import Mapping
from typing import Any

import click
from click.core import ParameterSource

from toolkit.errors import BadInput

_FIX = "give a value; if you gave a shell variable, set the variable"


def refusing_empty(command: click.Command) -> click.Command:
    """Make a command and its subcommands reject an empty value of an option or argument.

    Words that toolkit passes to another program (arguments of click's type ``UNPROCESSED``) may be empty.
    """
    for param in command.params:
        if not (isinstance(param, click.Argument) and param.type is click.UNPROCESSED):
            _refuse(param)
    for inner in getattr(command, "commands", {}).values():
        refusing_empty(inner)
    return command


def _refuse(param: click.Parameter) -> None:
    """Make an option or argument reject an empty value before click converts the value.

    click would convert an empty path to ``.``.
    """
    consume = param.consume_value
    if getattr(consume, "refuses_empty", False):  # an earlier call has already changed this parameter
        return

    def consumed(ctx: click.Context, opts: Mapping[str, Any]) -> tuple[Any, ParameterSource]:
        value, source = consume(ctx, opts)
        words = value if isinstance(value, (list, tuple)) else (value,)
        if source is ParameterSource.COMMANDLINE and any(isinstance(w, str) and not w for w in words):
            raise BadInput(f"{spelling(param)}: the value is empty", fix=_FIX)
        return value, source

    consumed.refuses_empty = True  # type: ignore[attr-defined] # an attribute set on the function
    param.consume_value = consumed  # type: ignore[method-assign] # click has no hook before conversion


def spelling(param: click.Parameter) -> str:
    """Return the name that ``--help`` shows for an option or argument, such as `--output` or `IMAGE`."""
    if isinstance(param, click.Option):
        return max(param.opts, key=len)
    return param.human_readable_name
