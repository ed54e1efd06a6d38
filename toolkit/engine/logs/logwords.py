"""Words without which a pattern of job output finds nothing; to look for them first saves time."""

import re
from functools import cache
from importlib import import_module
from typing import Any

WORD = re.compile(r"[A-Za-z_]{4,}")
"""What a word is; a text is searched for words by its distinct ones."""

_parser: Any = import_module("re._parser")  # the standard library's own; it has no public name and no types


@cache
def words(pattern: re.Pattern[str]) -> tuple[str, ...]:
    """Return words of which one is in every text that the pattern finds; none if no such words are known."""
    if pattern.flags & re.IGNORECASE:
        return ()
    return _of_sequence(_parser.parse(pattern.pattern)) or ()


def _of_sequence(sequence: Any) -> tuple[str, ...]:  # noqa: ANN401 - a list of the parser, which has no types
    """Return the words of the part of a sequence that tells most."""
    best, run = tuple[str, ...](), ""
    for name, value in ((str(operation), value) for operation, value in sequence):
        letter = chr(value) if name == "LITERAL" else ""
        if letter and (letter == "_" or (letter.isascii() and letter.isalpha())):
            run += letter
            continue
        best, run = max(best, _kept(run), _of_part(name, value), key=_worth), ""
    return max(best, _kept(run), key=_worth)


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


def _worth(found: tuple[str, ...]) -> tuple[int, int, int]:
    """Long words are rarer, and few of them are found in less text than many."""
    return min(map(len, found), default=0), -len(found), sum(map(len, found))
