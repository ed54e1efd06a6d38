"""Groups of commands that import the module of a command only when the command runs."""

import importlib
from collections.abc import Mapping
from typing import Any

import click

from toolkit.cli.frame.empty import refusing_empty
from toolkit.cli.frame.everywhere import taking_flags
from toolkit.near import suggest_near


class NearGroup(click.Group):
    """A group that suggests a similar name for an unknown command, and lists its commands in the order of
    their definition.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        # A word such as `-x` is an option, not a command. For this word, click reports an unknown option.
        if not ctx.resilient_parsing and name[:1].isalnum() and self.get_command(ctx, name) is None:
            known = self.list_commands(ctx)
            ctx.fail(f"{name}: no such command{suggest_near(name, known)}; choices: {', '.join(known)}")
        return super().resolve_command(ctx, args)


class LazyGroup(NearGroup):
    """A group that reads its commands from ``table``, a mapping in the form of ``commands.COMMANDS``."""

    def __init__(self, *arguments: Any, table: Mapping[str, tuple[str, str]], **more: Any) -> None:  # noqa: ANN401 - click's values
        super().__init__(*arguments, **more)
        self._table = table

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(self._table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in self._table:
            return None
        module, _ = self._table[cmd_name]
        found: click.Command = importlib.import_module(module).command
        return refusing_empty(taking_flags(found))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in self._table.items()])
