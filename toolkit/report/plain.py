"""Make untrusted text safe to print: it cannot control the terminal, imitate a line of toolkit or hide text.

toolkit writes an invisible character as its JSON escape, for example ``\\u001b`` for ESC. In JSON, invisible
characters occur only inside strings, so the escapes do not change the value of JSON text.

Sources: ECMA-48 for control functions; Unicode UAX #9 and CVE-2021-42574 for bidirectional controls; the
property ``Default_Ignorable_Code_Point`` of Unicode 15 for characters that are not drawn.
"""

import os
import re
from collections.abc import Iterable

_ESCAPE = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # colours, cursor movement, erasing
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?"  # window titles, links
    r"|\x1b[@-_]"
)
_TAB = 8

_NOT_DRAWN = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 controls without tab and line feed, DEL, C1 controls
    "\u2028\u2029"  # line and paragraph separators
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # bidirectional controls
    # format characters and other invisible characters
    "\xad\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\u180e\u200b-\u200d\u2060-\u2065\u206a-\u206f"
    "\ufeff\ufff0-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0000-\U000e0fff"
    # surrogates, noncharacters and characters for private use
    "\ud800-\udfff\ue000-\uf8ff\ufdd0-\ufdef\ufffe\uffff\U000f0000-\U0010ffff"
)

_OURS = f"\x1b{os.urandom(8).hex()}["
"""The start of the codes with which toolkit marks styles inside a text.

Each process chooses this start at random, so that untrusted text cannot contain a style code.
"""

_CODE = rf"{re.escape(_OURS)}[0-9;]*m"
_BLOCK = re.compile(f"({_CODE})|[{_NOT_DRAWN}]")
_LINE = re.compile(f"({_CODE})|[\t\n{_NOT_DRAWN}]")
_STYLE = re.compile(_CODE)
_SHORT = {"\t": "\\t", "\n": "\\n"}

WORD_LIMIT = 200
"""Maximum length of a word in a message, in characters. toolkit shortens a longer word in its middle."""

MESSAGE_LIMIT = 2000
"""Maximum length of a message in characters."""


def make_visible(text: str) -> str:
    """Return a text in which each invisible character is escaped, except blanks, tabs, line feeds and style
    codes.
    """
    return text if _is_ascii(text.replace("\n", "").replace("\t", "")) else _BLOCK.sub(_visible, text)


def one_line(text: str) -> str:
    """Return a text as one line in which each invisible character, tab and line feed is escaped."""
    return text if _is_ascii(text) else _LINE.sub(_visible, text)


def join_lines(lines: Iterable[str]) -> str:
    """Join lines with line feeds, and escape any line feed inside a line."""
    return "\n".join(map(one_line, lines))


def make_line_visible(line: str) -> str:
    """Return a line of output as a terminal would show it, without colours and without overwritten text."""
    last = line.rstrip("\r\n").rpartition("\r")[2]
    return one_line(_ESCAPE.sub("", last).expandtabs(_TAB))


def make_output_visible(text: str) -> str:
    """Return the output of a job or a build with :func:`make_line_visible` applied to each line."""
    return "\n".join(map(make_line_visible, text.split("\n")))


def bound_message(message: str) -> str:
    """Return a message as one line of at most :data:`MESSAGE_LIMIT` characters, with long words shortened."""
    line = re.sub(rf"\S{{{WORD_LIMIT + 1},}}", lambda match: _cut(match[0], WORD_LIMIT), one_line(message))
    return _cut(line, MESSAGE_LIMIT)


def add_style(text: str, code: str) -> str:
    """Return a text with toolkit's codes for a style before and after the text. ``code`` is the style's SGR
    number in ECMA-48.
    """
    return f"{_OURS}{code}m{text}{_OURS}0m"


def colour_styles(text: str) -> str:
    """Replace toolkit's style codes in a text by the codes that a terminal understands."""
    return text.replace(_OURS, "\x1b[")


def remove_styles(text: str) -> str:
    """Return a text without toolkit's style codes."""
    return _STYLE.sub("", text)


def _is_ascii(text: str) -> bool:
    """Return whether a text has only visible ASCII characters. For such a text, toolkit skips the slow search
    for invisible characters.
    """
    return text.isascii() and text.isprintable()


def _visible(match: re.Match[str]) -> str:
    if match[1]:
        return match[1]
    character = match[0]
    if character in _SHORT:
        return _SHORT[character]
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


def _cut(text: str, limit: int) -> str:
    """Return a text shortened in its middle to at most ``limit`` characters."""
    if len(text) <= limit:
        return text
    return f"{text[: limit // 2]}…{text[-(limit - limit // 2 - 1) :]}"
