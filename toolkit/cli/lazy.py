"""A group of commands that are imported when they are used, not when they are listed."""

import importlib
from collections.abc import Mapping
from typing import Any

import click


class LazyGroup(click.Group):
    """``table`` says of each command where it is, as its module's ``command``, and what help says of it."""

    def __init__(self, *arguments: Any, table: Mapping[str, tuple[str, str]], **more: Any) -> None:  # noqa: ANN401 - click's
        super().__init__(*arguments, **more)
        self._table = table

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(self._table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in self._table:
            return None
        module, _ = self._table[cmd_name]
        found: click.Command = importlib.import_module(module).command
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in self._table.items()])
