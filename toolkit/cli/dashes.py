"""Keep the command of a rank, which stands after ``--``, apart from the options of toolkit."""

import click

REST = "toolkit.rest"
"""Where the context keeps the words after ``--``."""


class SplitAtDashes(click.Command):
    """A command that keeps what stands after ``--`` apart and untouched."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--" in args:
            cut = args.index("--")
            ctx.meta[REST] = tuple(args[cut + 1 :])
            args = args[:cut]
        return super().parse_args(ctx, args)
