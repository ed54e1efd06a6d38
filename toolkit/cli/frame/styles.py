"""Colours and line widths of the terminal."""

import os
import shutil
import sys

from toolkit.report.lines import Style, leave_unstyled
from toolkit.report.plain import add_style

_LEAST = 30
"""The smallest line width of toolkit's output, in characters. A narrower terminal wraps the lines."""
_CODES = {"good": "32", "bad": "31", "warn": "33", "bold": "1", "dim": "2"}
"""The codes of ECMA-48 (SGR) for green, red, yellow, bold and faint."""


def style_of_stdout() -> Style:
    """Return a function that colours text for standard output.

    The returned function adds no colours if standard output is a file, a pipe or a dumb terminal, or if
    ``NO_COLOR`` is set.
    """
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return leave_unstyled
    return _coloured


def width_of_stdout() -> int:
    """Return the line width for standard output, in characters: the value of ``COLUMNS`` or the terminal's
    width. Return 100 if standard output is not a terminal and ``COLUMNS`` is not set.
    """
    return max(_LEAST, shutil.get_terminal_size((100, 24)).columns)


def width_of_terminal() -> int | None:
    """Return the width of standard output's terminal in characters. For a file or a pipe, return ``None``, so
    that callers do not wrap rows.
    """
    return width_of_stdout() if sys.stdout.isatty() else None


def width_of_errors() -> int | None:
    """Return the line width for standard error. Return ``None`` if standard error is a file or a pipe."""
    return width_of_stdout() if sys.stderr.isatty() else None


def _coloured(text: str, style: str) -> str:
    return add_style(text, _CODES[style]) if style in _CODES else text
