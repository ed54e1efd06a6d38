"""Separate the words after ``--``, such as the command that each rank runs, from toolkit's options."""

import click

REST = "toolkit.rest"
"""The key of ``ctx.meta``, in click's context, under which toolkit stores the words after ``--``."""

FIX = "toolkit.fix"
"""The key of ``ctx.meta`` under which toolkit stores the hint for a usage error."""

_RUN_COMMANDS = {"launch", "scale", "start"}
"""Names of the commands that accept, after ``--``, the command that each rank runs."""


class SplitAtDashes(click.Command):
    """A click command that parses only the words before ``--``, and stores the words after ``--``."""

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
                    f"to list toolkit's options: `{ctx.command_path} --help`"
                )
            raise
        except click.UsageError as error:
            if "unexpected extra argument" in error.message and ctx.info_name in _RUN_COMMANDS:
                ctx.meta[FIX] = f"a command goes after `--`, as in: `{ctx.command_path} -- python train.py`"
            raise
