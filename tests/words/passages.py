"""Find the text for readers in files of any kind; code is left out.

======================  ==============================================================================
Markdown                all but code blocks, inline code, addresses, HTML tags and comments
Python                  docstrings and comments; in toolkit/ also every string of three words or more
TOML                    comments; the values of the keys in ``fields`` of ``words.toml``
shell, Make, Docker,    lines that are comments
Jinja, YAML
``.gitmessage``         all; issue templates are read as Markdown
======================  ==============================================================================

Strings of three words or more are nearly always messages, help or findings. Raw strings are patterns and are
not read.
"""

import re
from collections.abc import Callable, Collection, Iterator
from pathlib import PurePosixPath
from typing import NamedTuple

from tests.words.literals import python, toml


class Passage(NamedTuple):
    """A piece of text that starts at ``line`` of its file and has the same line breaks as the file."""

    line: int
    text: str


_FENCE = re.compile(r"^([ \t>]*)(```+|~~~+)[^\n]*\n.*?(?:^[ \t>]*\2[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_HIDDEN = re.compile(
    r"<!--.*?-->|</?[a-zA-Z][^<>\n]*>|\]\([^()\s]*\)|\]: *\S+|\bhttps?://[^\s)>]+", re.DOTALL
)
_CODE = re.compile(r"(?<!`)(`+)(?!`)((?:(?!\n[ \t]*\n).)+?)(?<!`)\1(?!`)", re.DOTALL)
_ITEM = re.compile(r" {0,3}(?:[-*+] |\d+[.)] |!!! |\?\?\?\+? |=== |\[\^)")
_COMMENT = re.compile(r"(?:^[ \t]*#(?!!|SBATCH\b|PBS\b)[^\n]*(?:\n|\Z))+", re.MULTILINE)
_WORDS = re.compile(r"[A-Za-z']{2,} +(?:[^\s]+ +)*?[A-Za-z']{2,} +(?:[^\s]+ +)*?[A-Za-z']{2,}")


def passages(path: str, source: str, fields: Collection[str]) -> Iterator[Passage]:
    for start, text in _reader(PurePosixPath(path), fields)(source):
        yield Passage(source.count("\n", 0, start) + 1, without_code(text))


def without_code(text: str) -> str:
    """Return the text with an X for each character of inline code."""
    return _CODE.sub(lambda match: _covered(match[0]), text) if "`" in text else text


Reader = Callable[[str], Iterator[tuple[int, str]]]


def _reader(path: PurePosixPath, fields: Collection[str]) -> Reader:
    if path.suffix == ".md" or "ISSUE_TEMPLATE" in path.parts:
        return _markdown
    if path.suffix == ".py":
        messages = path.parts[0] == "toolkit"
        return lambda source: python(source, is_message if messages else lambda text: False)
    if path.suffix == ".toml":
        return lambda source: toml(source, fields)
    if path.name == ".gitmessage":
        return lambda source: iter([(0, source)])
    if (
        path.suffix in {".sh", ".j2", ".yml", ".yaml"}
        or "file" in path.name.lower()
        or path.parts[0] == ".ci"
    ):
        return _comments
    return lambda source: iter(())


def is_message(text: str) -> bool:
    """Return whether a string counts as a message, which has three words or more."""
    return _WORDS.search(" ".join(text.split())) is not None


def _markdown(source: str) -> Iterator[tuple[int, str]]:
    text = _without_indented(_FENCE.sub(lambda match: _blank(match[0]), source))
    # Blanks replace the hidden text, so that all other text keeps its line.
    yield 0, _HIDDEN.sub(lambda match: _blank(match[0]), without_code(text))


def _without_indented(text: str) -> str:
    """Return Markdown text without code blocks that are indented by four blanks.

    Indented text in lists and notes stays, because it is not code.
    """
    lines, item, before, code = text.split("\n"), False, "", False
    for number, line in enumerate(lines):
        indented = line.startswith("    ")
        if line.strip() and not indented:
            item = _ITEM.match(line) is not None or (item and (bool(before.strip()) or line[0] == " "))
        code = indented and not item and (code or not before.strip())
        before = line
        if code:
            lines[number] = ""
    return "\n".join(lines)


def _comments(source: str) -> Iterator[tuple[int, str]]:
    for match in _COMMENT.finditer(source):
        yield match.start(), re.sub(r"^([ \t]*)#", r"\1 ", match[0], flags=re.MULTILINE)


def _blank(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)


def _covered(text: str) -> str:
    return re.sub(r"[^\n]", "X", text)
