"""Text that others wrote, as job output and build logs, such that it does nothing to a terminal."""

import re

_ESCAPE = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # a colour, a move, an erasure
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?"  # a title, a link
    r"|\x1b[@-_]"
)
_TAB = 8


def one_line(text: str) -> str:
    """Return a text that may quote anything such that it stays on its line."""
    return "".join(c if c.isprintable() else "?" for c in text)


def as_shown(line: str) -> str:
    """Return a line as a terminal would show it without colours: what was written over is left out."""
    last = line.rstrip("\r\n").rpartition("\r")[2]
    return one_line(_ESCAPE.sub("", last).expandtabs(_TAB))
