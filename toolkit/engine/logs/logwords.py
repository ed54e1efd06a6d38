"""Find the texts that a line must contain to match a pattern (a regular expression). toolkit searches for
these texts first, because a search for texts is faster than a search for a pattern.
"""

import re
from collections.abc import Iterable
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

WORD = re.compile(r"[a-z_]{3,}")
"""A pattern for a word in lower case."""

_SPACED = bytes(code if WORD.match(chr(code) * 3) else 32 for code in range(256))
"""A table for ``bytes.translate`` that keeps characters of words and replaces all other bytes with blanks."""

_MOST = 3
"""Maximum number of groups that :func:`required_words` returns for a pattern."""

_parser: Any = import_module("re._parser")  # a private module without types


class Needed(NamedTuple):
    """A lower-case text that a pattern may require in a line, and the longest word of this text."""

    word: bytes
    text: bytes


@cache
def required_words(pattern: str) -> tuple[tuple[Needed, ...], ...]:
    """Return groups of texts that a pattern requires. Every line that matches the pattern contains, in lower
    case, at least one text of each group.

    The group that probably occurs in the fewest lines comes first. The required texts contain no digits.
    """
    found = sorted(_of_sequence(_parser.parse(pattern)), key=_selectivity, reverse=True)[:_MOST]
    return tuple(tuple(_needed_text(text) for text in group) for group in found)


def longest_word(text: str) -> bytes:
    """Return the longest word in a lower-case text; empty if the text contains no word."""
    found: str = max(WORD.findall(text), key=len, default="")
    return found.encode()


def _needed_text(text: str) -> Needed:
    return Needed(longest_word(text), text.encode())


class WordFinder:
    """Finds in one pass which words of a given set occur in a text."""

    def __init__(self, words: Iterable[bytes]) -> None:
        known = set(words)
        self._pattern = re.compile(_tree(sorted(known)))
        self._begun = {word: known & {word[:end] for end in range(1, len(word) + 1)} for word in known}

    def found_in(self, text: bytes) -> set[bytes]:
        """Return the words of the set that occur in a lower-case text, also inside longer words."""
        found: set[bytes] = set()
        vocabulary = b" ".join(set(text.translate(_SPACED).split()))
        hit = self._pattern.search(vocabulary)
        while hit:
            found.update(self._begun[hit[0]])
            hit = self._pattern.search(vocabulary, hit.start() + 1)
        return found


def _tree(words: list[bytes]) -> bytes:
    """Return a pattern that matches the longest possible word of the list. In the pattern, words with the
    same start share a branch.
    """
    branches: dict[bytes, list[bytes]] = {}
    for word in words:
        branches.setdefault(word[:1], []).append(word[1:])
    ends = branches.pop(b"", None) is not None
    ways = [letter + _tree(rest) for letter, rest in branches.items()]
    if len(ways) == 1 and not ends:
        return ways[0]
    return b"(?:" + b"|".join(ways) + b")" + (b"?" if ends else b"") if ways else b""


def _of_sequence(sequence: Any) -> list[tuple[str, ...]]:  # noqa: ANN401 - a list of the parser, which has no types
    """Return the groups of texts that a parsed sequence of a regular expression requires."""
    found, run = list[tuple[str, ...]](), ""
    for name, value in ((str(operation), value) for operation, value in sequence):
        letter = chr(value).lower() if name == "LITERAL" else ""
        if letter.isascii() and letter.isprintable() and letter and not letter.isdigit():
            run += letter
            continue
        found += [*_selective_run(run), *_of_part(name, value)]
        run = ""
    return [*found, *_selective_run(run)]


def _of_part(name: str, value: Any) -> list[tuple[str, ...]]:  # noqa: ANN401 - ``name`` decides the type
    """Return the groups of texts that a parsed group, repetition, choice or lookahead of a regular expression
    requires.
    """
    match name:
        case "SUBPATTERN":
            return _of_sequence(value[3])
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT" if value[0] > 0:
            return _of_sequence(value[2])
        case "ASSERT" if value[0] > 0:
            return _of_sequence(value[1])
        case "BRANCH":
            ways = [max(_of_sequence(way), key=_selectivity, default=()) for way in value[1]]
            return [tuple(dict.fromkeys(text for way in ways for text in way))] if all(ways) else []
        case _:
            return []


def _selective_run(run: str) -> list[tuple[str, ...]]:
    return [(run,)] if WORD.search(run) else []


def _selectivity(texts: tuple[str, ...]) -> tuple[int, int, int]:
    """Return a sort key for a group of texts. The key is larger for a group that probably occurs in fewer
    lines: long words are rare, and a group with fewer texts matches fewer lines.
    """
    lengths = [len(longest_word(text)) for text in texts]
    return min(lengths, default=0), -len(texts), sum(lengths)
