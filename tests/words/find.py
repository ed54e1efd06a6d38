"""Find the words of ``words.toml`` in a text."""

import re
import tomllib
from collections.abc import Iterable, Iterator
from fnmatch import fnmatch
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import msgspec

from tests.words.passages import passages

DATA = Path(__file__).with_name("words.toml")
_SPACE = r"(?:[^\S\n]+(?:\n[^\S\n]*)?|\n[^\S\n]*)"
_BEFORE, _AFTER = r"(?<![\w./-])(?=[a-z])", r"(?![\w(/-]|\.\w)"


class Word(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One row of ``words.toml``; comments in that file explain the fields."""

    word: str
    pattern: str
    say: str
    why: str
    allow: tuple[str, ...] = ()


class Words(msgspec.Struct, forbid_unknown_fields=True, dict=True):
    clean: tuple[str, ...]
    skip: tuple[str, ...]
    fields: tuple[str, ...]
    word: tuple[Word, ...]

    @cached_property
    def _any(self) -> re.Pattern[str]:
        return _compiled(f"(?P<w{place}>{word.pattern})" for place, word in enumerate(self.word))

    @cached_property
    def _allowed(self) -> dict[str, re.Pattern[str]]:
        return {word.word: _compiled(word.allow) for word in self.word if word.allow}

    def matches(self, text: str) -> Iterator[tuple[Word, int, int]]:
        """Yield each listed word in a text, with its start and end.

        If two rows of ``words.toml`` match at the same place, the first row counts.
        """
        small = text.lower()
        small = small if len(small) == len(text) else text
        for match in self._any.finditer(small):
            word = self.word[int((match.lastgroup or "")[1:])]
            allowed = self._allowed.get(word.word)
            if allowed is None or not _inside(match, allowed):
                yield word, *match.span()


def _inside(match: re.Match[str], allowed: re.Pattern[str]) -> bool:
    """Return whether a match is part of an allowed phrase."""
    spans = (found.span() for found in allowed.finditer(match.string, max(0, match.start() - 60)))
    return any(start <= match.start() and match.end() <= end for start, end in spans)


class Found(NamedTuple):
    path: str
    line: int
    word: str
    text: str
    say: str
    why: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.text} -> {self.say} ({self.why})"


def load(path: Path = DATA) -> Words:
    return msgspec.convert(tomllib.loads(path.read_text()), Words)


def find(path: str, source: str, words: Words) -> list[Found]:
    if any(fnmatch(path, pattern) for pattern in words.skip):
        return []
    found = [
        Found(
            path=path,
            line=passage.line + passage.text.count("\n", 0, start),
            word=word.word,
            text=" ".join(passage.text[start:end].split()),
            say=word.say,
            why=word.why,
        )
        for passage in passages(path, source, words.fields)
        for word, start, end in words.matches(passage.text)
    ]
    return sorted(found)


def _compiled(patterns: Iterable[str]) -> re.Pattern[str]:
    """Return one pattern that matches any expression as whole lower-case words.

    A space also matches one line break.
    """
    return re.compile(f"{_BEFORE}(?:{'|'.join(patterns).replace(' ', _SPACE)}){_AFTER}")
