"""Find docstrings, comments and strings of Python and TOML by regular expressions.

Regular expressions are faster than ``ast`` and ``tokenize``, which need ten seconds for this project. A test
compares the results of both.
"""

import re
from collections.abc import Callable, Collection, Iterator

_PYTHON = re.compile(
    r"(?P<prefix>\b[rRbBfFuU]{1,2})?(?P<quote>\"\"\"|'''|\"|')(?P<body>(?:\\.|(?!(?P=quote)).)*?)(?P=quote)"
    r"|(?P<comment>\#[^\n]*)",
    re.DOTALL,
)
_TOML = re.compile(
    r"(?P<quote>\"\"\"|'''|\"|')(?P<body>(?:\\.|(?!(?P=quote)).)*?)(?P=quote)"
    r"|(?P<comment>\#[^\n]*)|(?P<key>(?:^|(?<=[{,]))[ \t]*[\w-]+(?=[ \t]*=))",
    re.DOTALL | re.MULTILINE,
)
_FIELD = re.compile(r"\{[^{}]*\}")
_ESCAPE = re.compile(r"\\[\\nrtabfv\"'0]|\\\n")


class _Pieces:
    """Joins consecutive pieces of text that have only blanks between them."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._kind = ""
        self._start = self._end = 0
        self._text = ""

    def add(self, kind: str, start: int, end: int, text: str) -> Iterator[tuple[str, int, str]]:
        """Add a piece of text; yield the finished pieces before it, as (kind, start, text)."""
        gap = self._source[self._end : start]
        if kind == self._kind and not gap.strip():
            self._text += gap + text
        else:
            yield from self.rest()
            self._kind, self._start, self._text = kind, start, text
        self._end = end

    def rest(self) -> Iterator[tuple[str, int, str]]:
        if self._kind:
            yield self._kind, self._start, self._text
        self._kind = ""


def python(source: str, is_message: Callable[[str], bool]) -> Iterator[tuple[int, str]]:
    """Yield (start, text) of docstrings, comments, and strings that are messages."""
    for kind, start, text in _python(source):
        if kind != "string" or is_message(text):
            yield start, text


def _python(source: str) -> Iterator[tuple[str, int, str]]:
    depth = last = 0
    pieces = _Pieces(source)
    for match in _PYTHON.finditer(source):
        start, end = match.span()
        depth += _opened(source[last:start])
        last = end
        if match["comment"]:
            yield from pieces.add("comment", start, end, " " + match[0][1:])
            continue
        line = source.rfind("\n", 0, start) + 1
        alone = depth == 0 and not source[line:start].strip() and source[line - 2 : line] != "\\\n"
        prefix = (match["prefix"] or "").lower()
        if alone or not {"r", "b"} & set(prefix):
            yield from pieces.add("docstring" if alone else "string", start, end, _body(match, prefix))
    yield from pieces.rest()


def _opened(code: str) -> int:
    """Return the number of opening brackets minus the number of closing brackets in a piece of code."""
    return sum(map(code.count, "([{")) - sum(map(code.count, ")]}"))


def _body(match: re.Match[str], prefix: str) -> str:
    body = _ESCAPE.sub(lambda found: " \n" if found[0] == "\\\n" else "  ", match["body"])
    if "f" in prefix:
        body = _without_fields(body)
    quote = " " * len(match["quote"])
    return " " * len(prefix) + quote + body + quote


def _without_fields(body: str) -> str:
    """Return an f-string's text with an X for each character of its fields; fields may be nested."""
    shorter = _FIELD.sub(lambda found: re.sub(r"[^\n]", "X", found[0]), body)
    return body if shorter == body else _without_fields(shorter)


def toml(source: str, fields: Collection[str]) -> Iterator[tuple[int, str]]:
    """Yield (start, text) of comments, and of strings that are values of the keys ``fields``."""
    key = ""
    pieces = _Pieces(source)
    for match in _TOML.finditer(source):
        if match["key"]:
            key = match["key"].strip()
        elif match["comment"]:
            for _, start, text in pieces.add("comment", match.start(), match.end(), " " + match[0][1:]):
                yield start, text
        elif key in fields:
            for _, start, text in pieces.rest():
                yield start, text
            yield match.start("body"), match["body"]
    for _, start, text in pieces.rest():
        yield start, text
