"""Wrap text to the width of a terminal, and wrap commands so that users can paste them into a shell."""

import shlex
import textwrap
from collections.abc import Callable, Iterable

from toolkit.report.plain import one_line

Style = Callable[[str, str], str]
"""A function that returns its first argument in a style for the terminal. The second argument names the
style: ``good``, ``bad``, ``warn``, ``dim`` or ``bold``; an empty name means no style.
"""

ROOM = 20
"""The minimum width of a column of text, in characters. If a column would be narrower, its text starts
farther left.
"""


def leave_unstyled(text: str, style: str) -> str:  # noqa: ARG001 - the signature of Style
    """Return the text unchanged. Callers use this function as the style if the output goes to a file or a
    pipe, or if ``NO_COLOR`` is set.
    """
    return text


def wrap_text(
    text: str, indent: int, width: int, *, prefix: str = "", outdent: int | None = None
) -> list[str]:
    """Return a text as wrapped lines, without breaks inside paths, options and IDs.

    The first line starts at column ``indent`` with ``prefix``; the other lines are aligned with the text
    after ``prefix``. With ``outdent``, the first line starts ``outdent`` columns to the left of ``indent``,
    and all other lines start at ``indent``.
    """
    after = " " * (indent + (len(prefix) if outdent is None else 0))
    start = " " * (indent - (outdent or 0)) + prefix
    return textwrap.wrap(
        text,
        width,
        initial_indent=start,
        subsequent_indent=after,
        break_long_words=False,
        break_on_hyphens=False,
    )


def wrap_hanging(label: str, text: str, width: int | None) -> list[str]:
    """Return a label and a text, wrapped into lines that are aligned after the label. If ``width`` is
    ``None``, return one line.
    """
    text = one_line(text)
    if width is None:
        return [f"{label}{text}"]
    near = len(label) if width - len(label) >= ROOM else 4
    return wrap_text(text, near, width, prefix=label, outdent=near) or [label.rstrip()]


def command_lines(
    words: Iterable[str], indent: int, width: int, *, prefix: str = "", next_indent: int | None = None
) -> list[str]:
    """Return a command as wrapped lines. Each line except the last has a backslash at the end.

    An option and its value are on the same line. ``prefix`` precedes the command. ``next_indent`` is the
    indentation of all lines after the first line. By default, these lines start two columns to the right of
    the command.
    """
    further = " " * (indent + len(prefix) + 2 if next_indent is None else next_indent)
    lines = [" " * indent + prefix]
    for number, group in enumerate(_groups([shlex.quote(word) for word in words])):
        behind = f"{lines[-1]} {group}" if number else f"{lines[-1]}{group}"
        if number and len(behind) + len(_GOES_ON) > width:
            lines[-1] += _GOES_ON
            lines.append(f"{further}{group}")
        else:
            lines[-1] = behind
    return lines


_GOES_ON = " \\"


def _groups(words: list[str]) -> list[str]:
    """Join each option with the next word, which may be its value, so that both words stay on one line."""
    groups: list[str] = []
    takes = False
    for word in words:
        if takes and not word.startswith("-"):
            groups[-1] += f" {word}"
            takes = False
        else:
            groups.append(word)
            takes = word.startswith("-") and word != "--" and "=" not in word
    return groups
