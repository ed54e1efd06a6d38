"""The page of recorded launches as a coloured table, with a legend."""

import re
from html import escape

OUTCOMES = {
    "ok": "all ranks join one world, and every byte arrives",
    "singletons": "each rank starts as a world of size 1; the exit status is 0",
    "wrong-size": "the world has another number of ranks than requested",
    "init-failure": "MPI_Init fails",
    "loader-failure": "the program does not start, because a library is missing or wrong",
    "comm-failure": "ranks start, but messages between ranks fail",
    "hang": "the launch does not finish within its time limit",
    "crash": "a rank or the launcher crashes",
    "unavailable": "the cluster lacks this launch mode",
}
"""Each outcome, and its meaning in the legend. ``docs/assets/site.css`` has the colours."""

_CELL = re.compile(r"(<td[^>]*>)(.*?)(</td>)")
_WORD = rf"(?:<strong>)?({'|'.join(OUTCOMES)}|-)(?:</strong>)?"
_TRIES = r"(?: \(\d+\))?"
_ENTRY = re.compile(rf"(?:{_WORD}{_TRIES})?(?: ?→ {_WORD}{_TRIES})?")
_FIRST = re.compile(r"<h2 ")
_SECTION = re.compile(r'<h2 id="([^"]+)">([^<]+)')


def coloured(html: str) -> str:
    """Return the page with a colour for each outcome in its tables, and a legend before the first table."""
    head = _legend() + _places(html)
    return _FIRST.sub(lambda match: head + match[0], _CELL.sub(_cell, html), count=1)


def _places(html: str) -> str:
    """Return links to the sections: the page has no table of contents, because its tables are wide."""
    links = (f'<a href="#{place}">{name}</a>' for place, name in _SECTION.findall(html))
    return f"<p>{' · '.join(links)}</p>\n"


def _cell(found: re.Match[str]) -> str:
    start, text, end = found.groups()
    marked = re.sub(_WORD, lambda word: _chip(word[1]), text) if _ENTRY.fullmatch(text) else text
    return start + marked + end


def _chip(word: str) -> str:
    name, shown = ("unavailable", "-") if word in {"-", "unavailable"} else (word, word)
    return f'<span class="outcome outcome-{name}">{shown}</span>'


def _legend() -> str:
    rows = (f"<div>{_chip(word)} {escape(meaning)}</div>" for word, meaning in OUTCOMES.items())
    return f'<div class="outcomes" id="outcomes">{"".join(rows)}</div>\n'
