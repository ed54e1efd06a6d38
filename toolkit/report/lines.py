"""Text in lines that fit a terminal: sentences at their spaces, commands so that they can be pasted."""

import shlex
import textwrap
from collections.abc import Callable, Iterable

from toolkit.report.plain import one_line

Style = Callable[[str, str], str]
"""Puts text into a style: ``good``, ``bad``, ``warn``, ``dim``, ``bold``; plain output has none."""

ROOM = 20
"""The smallest width of a column of text; narrower text moves left, or below the text before it."""


def leave_unstyled(text: str, style: str) -> str:  # noqa: ARG001 - the signature of Style
    """Leave text unchanged, for a file, a pipe and ``NO_COLOR``."""
    return text


def wrap_text(text: str, indent: int, width: int, *, first: str = "", hang: int | None = None) -> list[str]:
    """Return a text in lines; paths, options and ids are never broken, even if one is wider than a line.

    ``first`` precedes the first line, and the other lines are aligned with the text after it; ``hang`` is the
    width of a hanging label.
    """
    after = " " * (indent + (len(first) if hang is None else 0))
    start = " " * (indent - (hang or 0)) + first
    return textwrap.wrap(
        text,
        width,
        initial_indent=start,
        subsequent_indent=after,
        break_long_words=False,
        break_on_hyphens=False,
    )


def hung(label: str, text: str, width: int | None) -> list[str]:
    """Return a label and the text behind it, with aligned lines; one line without a width."""
    text = one_line(text)
    if width is None:
        return [f"{label}{text}"]
    near = len(label) if width - len(label) >= ROOM else 4
    return wrap_text(text, near, width, first=label, hang=near) or [label.rstrip()]


def command_lines(
    words: Iterable[str], indent: int, width: int, *, first: str = "", more: int | None = None
) -> list[str]:
    """Return a command in lines that a shell reads as one: each but the last ends in a backslash.

    An option and its value are on one line, as far as the words show it. ``more`` indents the lines after the
    first, which otherwise follow the text after ``first``.
    """
    further = " " * (indent + len(first) + 2 if more is None else more)
    lines = [" " * indent + first]
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
    """Join options with the following word if the word may be their value."""
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
