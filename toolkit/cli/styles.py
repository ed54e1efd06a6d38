"""Colours, where somebody sees them."""

import os
import shutil
import sys

import click

from toolkit.report.doctor import Style, unstyled

_LEAST = 30
"""Below it no page can be laid out; a terminal breaks what is wider."""
_COLOURS = {"good": "green", "bad": "red", "warn": "yellow"}


def style_of_stdout() -> Style:
    """Return colours for a terminal; none for a file, a pipe, a dumb terminal or ``NO_COLOR``."""
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return unstyled
    return _coloured


def width_of_stdout() -> int:
    """Return how many characters fit a line; of a line that is not on a terminal, how many it should have."""
    return max(_LEAST, shutil.get_terminal_size((100, 24)).columns)


def width_of_terminal() -> int | None:
    """Return the same where somebody looks; ``None`` for a file or a pipe, whose rows stay whole."""
    return width_of_stdout() if sys.stdout.isatty() else None


def _coloured(text: str, style: str) -> str:
    if style in _COLOURS:
        return click.style(text, fg=_COLOURS[style])
    # Only what is wanted is named: bold=False would write the code that ends dim as well, and the reverse.
    if style == "bold":
        return click.style(text, bold=True)
    return click.style(text, dim=True) if style == "dim" else text
