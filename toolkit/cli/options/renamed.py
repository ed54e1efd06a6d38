"""Accept option names of earlier releases, and print a warning. ``--help`` does not show former names."""

from collections.abc import Iterator, Mapping
from typing import ClassVar

import click


class RenamedOptions(click.Command):
    """A click command that accepts former option names; ``RENAMED`` maps former names to present names."""

    RENAMED: ClassVar[Mapping[str, str]] = {}

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, list(self._present(args)))

    def _present(self, args: list[str]) -> Iterator[str]:
        from toolkit.cli.frame.say import say

        behind = args.index("--") if "--" in args else len(args)
        for place, word in enumerate(args):
            name, equals, value = word.partition("=")
            if place >= behind or name not in self.RENAMED:
                yield word
                continue
            present = self.RENAMED[name]
            say(f"warning: {name} is deprecated; write {present}", err=True)
            yield f"{present}{equals}{value}"
