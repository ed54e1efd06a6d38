"""Foreign text in a form that cannot control a terminal, forge a line or hide on a page.

A character that is not shown is written as JSON writes it: ``\\u001b`` for an escape. In JSON text such a
character can only stand inside a string, so the same filter keeps the value of JSON.

Sources: control functions, ECMA-48; bidirectional controls, Unicode UAX #9 and CVE-2021-42574; characters
that are not drawn, the property ``Default_Ignorable_Code_Point`` of Unicode 15.
"""

import os
import re
from collections.abc import Iterable

_ESCAPE = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # a colour, a move, an erasure
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?"  # a title, a link
    r"|\x1b[@-_]"
)
_TAB = 8

_NOT_DRAWN = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 without tab and line feed, DEL, C1
    "\u2028\u2029"  # separators of lines and paragraphs
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # direction of writing
    # characters of format, and other invisible characters
    "\xad\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\u180e\u200b-\u200d\u2060-\u2065\u206a-\u206f"
    "\ufeff\ufff0-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0000-\U000e0fff"
    "\ud800-\udfff\ue000-\uf8ff\ufdd0-\ufdef\ufffe\uffff\U000f0000-\U0010ffff"  # noncharacters, private
)

_OURS = f"\x1b{os.urandom(8).hex()}["
"""Begins a code of a style. The code is random in every process, so no text of another program contains it.
"""

_CODE = rf"{re.escape(_OURS)}[0-9;]*m"
_BLOCK = re.compile(f"({_CODE})|[{_NOT_DRAWN}]")
_LINE = re.compile(f"({_CODE})|[\t\n{_NOT_DRAWN}]")
_STYLE = re.compile(_CODE)
_SHORT = {"\t": "\\t", "\n": "\\n"}

WORD_LIMIT = 200
"""Characters of a message without white space that are shown whole: longer names are cut in their middle."""

MESSAGE_LIMIT = 2000
"""Characters of a message that are shown."""


def make_visible(text: str) -> str:
    """Return a text with every character visible but spaces, tabs and line feeds; styles of toolkit stay."""
    return text if _is_ascii(text.replace("\n", "").replace("\t", "")) else _BLOCK.sub(_visible, text)


def one_line(text: str) -> str:
    """Return a text as :func:`make_visible` does, also with visible tabs and line feeds, so that it stays on
    one line.
    """
    return text if _is_ascii(text) else _LINE.sub(_visible, text)


def join_lines(lines: Iterable[str]) -> str:
    """Join lines to a text; a line break inside a line becomes visible."""
    return "\n".join(map(one_line, lines))


def make_line_visible(line: str) -> str:
    """Return a line as a terminal would show it without colours, without overwritten text."""
    last = line.rstrip("\r\n").rpartition("\r")[2]
    return one_line(_ESCAPE.sub("", last).expandtabs(_TAB))


def make_output_visible(text: str) -> str:
    """Return the output of a job, or of a build, with :func:`make_line_visible` applied to each line."""
    return "\n".join(map(make_line_visible, text.split("\n")))


def bound_message(message: str) -> str:
    """Return a message on one line of at most :data:`MESSAGE_LIMIT` characters, its long words shortened."""
    line = re.sub(rf"\S{{{WORD_LIMIT + 1},}}", lambda found: _cut(found[0], WORD_LIMIT), one_line(message))
    return _cut(line, MESSAGE_LIMIT)


def add_style(text: str, code: str) -> str:
    """Return a text in a style; ``code`` is a number of ECMA-48's SGR, which :func:`colour_styles` writes."""
    return f"{_OURS}{code}m{text}{_OURS}0m"


def colour_styles(text: str) -> str:
    """Return a text of :func:`make_visible` with the styles of toolkit as a terminal wants them."""
    return text.replace(_OURS, "\x1b[")


def remove_styles(text: str) -> str:
    """Return the same without styles."""
    return _STYLE.sub("", text)


def _is_ascii(text: str) -> bool:
    """Return whether a text holds only ASCII characters that are drawn, as nearly all output of jobs does."""
    return text.isascii() and text.isprintable()


def _visible(found: re.Match[str]) -> str:
    if found[1]:
        return found[1]
    character = found[0]
    if character in _SHORT:
        return _SHORT[character]
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


def _cut(text: str, limit: int) -> str:
    """Shorten a text in its middle, the least important part of a path."""
    if len(text) <= limit:
        return text
    return f"{text[: limit // 2]}…{text[-(limit - limit // 2 - 1) :]}"
