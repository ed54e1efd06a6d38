"""Separate the command of a rank, after ``--``, from the options of toolkit."""

import click

REST = "toolkit.rest"
"""The key of the words after ``--`` in the context."""

FIX = "toolkit.fix"
"""The key of the hint in the context: how to correct an option of the program before ``--``."""

_RUN_COMMANDS = {"launch", "scale", "start"}
"""Commands that accept a bare command after ``--``."""


class SplitAtDashes(click.Command):
    """A command that keeps the words after ``--`` separate and unchanged."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        given = list(args)
        if "--" in args:
            cut = args.index("--")
            ctx.meta[REST] = tuple(args[cut + 1 :])
            args = args[:cut]
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            if "--" not in given:
                ctx.meta[FIX] = (
                    f"an option of your program goes after `--`, as in: `-- {error.option_name} …`; "
                    f"options of toolkit: `{ctx.command_path} --help`"
                )
            raise
        except click.UsageError as error:
            if "unexpected extra argument" in error.message and ctx.info_name in _RUN_COMMANDS:
                ctx.meta[FIX] = f"a command goes after `--`, as in: `{ctx.command_path} -- python train.py`"
            raise
