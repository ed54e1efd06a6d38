"""Format help so that lines break between words, and never after the hyphen in an option's name."""

from collections.abc import Iterable

import click

_HYPHEN = "\u2011"
"""Unicode's non-breaking hyphen, at which click does not break a line."""


class WholeWordFormatter(click.HelpFormatter):
    """A help formatter that keeps words such as `--env-image` and `tf-config` on one line."""

    def write_text(self, text: str) -> None:
        super().write_text(text.replace("-", _HYPHEN))

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        kept = [(name, text.replace("-", _HYPHEN)) for name, text in rows]
        super().write_dl(kept, col_max, col_spacing)

    def getvalue(self) -> str:
        return super().getvalue().replace(_HYPHEN, "-")
