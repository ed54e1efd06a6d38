"""Search job output for many patterns at once, within a time limit."""

import re
import time
from array import array
from bisect import bisect_right
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import accumulate

from toolkit.engine.logs.joblines import Output, Page, line_text
from toolkit.engine.logs.logwords import WORD, words

_OF_ANY_NUMBER = re.compile(r"0-9|\{\d*,?\d*\}")
"""Parts of patterns that contain digits but match no number: character ranges and repetition counts."""

_KEPT = 500
"""Number of first and of last lines to keep for a pattern that matches more lines of a page."""


@dataclass(frozen=True, slots=True)
class PatternLines:
    """Pattern → positions of the lines that it matches, in order; and the numbers of unread lines."""

    positions: dict[re.Pattern[str], "array[int]"]
    unread: tuple[int, int] | None


class View:
    """The lines of a page, each distinct text once; most lines of training differ only in their numbers."""

    def __init__(self, content: bytes) -> None:
        self._parts = content.replace(b"\r", b"\n").split(b"\n")
        self._unique = [part for part in dict.fromkeys(self._parts) if part]
        self._texts = list(map(line_text, self._unique))
        self.text = "\n".join(self._texts)
        self._starts = [0, *accumulate(len(text) + 1 for text in self._texts)]

    @cached_property
    def _places(self) -> dict[bytes, list[int]]:
        places: dict[bytes, list[int]] = {}
        for part, at in zip(
            self._parts, accumulate((len(p) + 1 for p in self._parts), initial=0), strict=False
        ):
            places.setdefault(part, []).append(at)
        return places

    def unique_at(self, at: int) -> tuple[int, int]:
        """Return the number of the line at a place in ``text``, and where the next line begins."""
        number = bisect_right(self._starts, at) - 1
        return number, self._starts[number + 1]

    def places_of(self, number: int) -> list[int]:
        """Return the positions of the lines that have the text of one number."""
        return self._places[self._unique[number]]

    def matching(self, pattern: re.Pattern[str]) -> list[int]:
        """Return the positions of the lines that a pattern matches.

        A fast search covers all lines at once. A second search checks each matching line alone.
        """
        found: list[int] = []
        last = -1
        for hit in pattern.finditer(self.text):
            first = bisect_right(self._starts, hit.start()) - 1
            end = bisect_right(self._starts, max(hit.start(), hit.end() - 1)) - 1
            for number in range(max(first, last + 1), min(end, len(self._texts) - 1) + 1):
                last = number
                if pattern.search(self._texts[number]):
                    found += self._places[self._unique[number]]
        found.sort()
        return found if len(found) <= 2 * _KEPT else found[:_KEPT] + found[-_KEPT:]


def search(output: Output, patterns: tuple[re.Pattern[str], ...], seconds: float) -> PatternLines:
    """Search from both ends to the middle, because causes are at the beginning or the end.

    Args:
        output: the job output.
        patterns: compiled with ``re.MULTILINE``; each matches a part of one line.
        seconds: time limit; the search then returns what it has found.
    """
    until = time.monotonic() + seconds
    found = {pattern: array("q") for pattern in patterns}
    left = set(output.pages)
    for page in output.pages_from_both_ends():
        if not _search_page(output, page, found, until):
            break
        left.discard(page)
    ordered = {
        pattern: array("q", sorted(positions)) if positions else positions
        for pattern, positions in found.items()
    }
    gaps = [(page.first, page.last) for page in left] + ([output.missing] if output.missing else [])
    unread = (min(first for first, _ in gaps), max(last for _, last in gaps)) if gaps else None
    return PatternLines(ordered, unread)


def _search_page(
    output: Output, page: Page, found: dict[re.Pattern[str], "array[int]"], until: float
) -> bool:
    """Search one page; return false if the time ran out before all patterns were searched."""
    content = output.content(page)
    shapes, lines = View(output.shapes(page)), None
    vocabulary = "\n".join(dict.fromkeys(WORD.findall(shapes.text)))
    for pattern, positions in found.items():
        if time.monotonic() > until:
            return False
        needed = words(pattern)
        if needed and not any(word in vocabulary for word in needed):
            continue
        if _names_a_number(pattern.pattern):
            lines = lines or View(content)
            positions.extend(page.start + at for at in lines.matching(pattern))
        else:
            positions.extend(page.start + at for at in shapes.matching(pattern))
    return True


@cache
def _names_a_number(pattern: str) -> bool:
    """Return whether the numbers of a line decide whether a pattern matches it."""
    return any(letter.isdigit() for letter in _OF_ANY_NUMBER.sub("", pattern))
