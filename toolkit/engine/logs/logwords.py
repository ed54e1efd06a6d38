"""Find words that a text must contain for a pattern to match. Searching for the words first saves time."""

import re
from functools import cache
from importlib import import_module
from typing import Any

WORD = re.compile(r"[A-Za-z_]{4,}")
"""A word. toolkit collects the distinct words of a text."""

_parser: Any = import_module("re._parser")  # the standard library's own; it has no public name and no types


@cache
def words(pattern: re.Pattern[str]) -> tuple[str, ...]:
    """Return words of which every matching text contains at least one; empty if no such words are known."""
    if pattern.flags & re.IGNORECASE:
        return ()
    return _of_sequence(_parser.parse(pattern.pattern)) or ()


def _of_sequence(sequence: Any) -> tuple[str, ...]:  # noqa: ANN401 - a list of the parser, which has no types
    """Return the words of the most selective part of a sequence."""
    best, run = tuple[str, ...](), ""
    for name, value in ((str(operation), value) for operation, value in sequence):
        letter = chr(value) if name == "LITERAL" else ""
        if letter and (letter == "_" or (letter.isascii() and letter.isalpha())):
            run += letter
            continue
        best, run = max(best, _kept(run), _of_part(name, value), key=_selectivity), ""
    return max(best, _kept(run), key=_selectivity)


def _of_part(name: str, value: Any) -> tuple[str, ...]:  # noqa: ANN401 - its type depends on the name
    """Return the words of a group, a repetition, a choice or a lookahead."""
    match name:
        case "SUBPATTERN":
            return _of_sequence(value[3])
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT" if value[0] > 0:
            return _of_sequence(value[2])
        case "ASSERT" if value[0] > 0:
            return _of_sequence(value[1])
        case "BRANCH":
            ways = [_of_sequence(way) for way in value[1]]
            return tuple(dict.fromkeys(w for way in ways for w in way)) if all(ways) else ()
        case _:
            return ()


def _kept(run: str) -> tuple[str, ...]:
    return (run,) if WORD.fullmatch(run) else ()


def _selectivity(found: tuple[str, ...]) -> tuple[int, int, int]:
    """Return how selective words are: long words are rare, and few words match less text than many."""
    return min(map(len, found), default=0), -len(found), sum(map(len, found))
