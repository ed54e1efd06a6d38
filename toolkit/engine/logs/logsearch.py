"""Search job output for many patterns at once, within a time limit."""

import re
import time
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import accumulate

from toolkit.engine.logs.joblines import COLOUR, Output, Page, line_text
from toolkit.engine.logs.logwords import WordFinder, longest_word, required_words

_OF_ANY_NUMBER = re.compile(r"0-9|\{\d*,?\d*\}")
"""A pattern for the digits in a character range or a repetition count of a regular expression. A line that
matches the regular expression need not contain these digits.
"""

_KEPT = 500
"""For each pattern, toolkit keeps at most this number of matching lines at each end of a page of output."""

_KEPT_ALIKE = 40
"""If suspect lines (lines with a word about faults) differ only in numbers, toolkit keeps at most this number
of them at each end of a page.
"""


MOST_SUSPECTS = 2000
"""If toolkit has found this number of suspect lines (lines with a word about faults) in one half of the
output, toolkit does not look for suspect lines in further pages of this half.
"""


@dataclass(frozen=True, slots=True)
class PatternLines:
    """The result of a search for patterns in job output.

    ``positions`` maps each pattern to the positions of the lines that it matches, in order. ``unread`` is the
    first and last line number of the part that toolkit did not read completely; ``None`` if toolkit read all
    lines. ``suspects`` are the positions of lines that contain a stem (a part of a word about faults, such as
    ``fail``). If there are very many such lines, ``suspects`` omits some of them.
    """

    positions: dict[str, "array[int]"]
    unread: tuple[int, int] | None
    suspects: Sequence[int] = ()


@cache
def compile_line_pattern(pattern: str) -> re.Pattern[str]:
    """Return the compiled form of ``pattern``, which the function compiles only once."""
    return re.compile(pattern, re.MULTILINE)


class View:
    """The distinct lines of a page, which is a part of the output. Lines that differ only in digits count as
    one distinct line, because most lines of a training run differ only in digits.
    """

    def __init__(self, content: bytes, shapes: bytes) -> None:
        self._content = content
        self._parts = shapes.replace(b"\r", b"\n").split(b"\n")
        self._unique = list(dict.fromkeys(self._parts))
        text = b"\n".join(self._unique).lower()
        self.text = COLOUR.sub(b"", text) if b"\x1b" in text else text
        """The distinct lines, in lower case and without colour codes."""

        self._with: dict[bytes, list[int]] = {}
        self._lines: dict[int, str] = {}

    def lines_with(self, texts: Iterable[bytes]) -> list[int]:
        """Return the numbers of the distinct lines that contain at least one of the lower-case texts."""
        return sorted({number for wanted in texts for number in self._having(wanted)})

    def _having(self, word: bytes) -> list[int]:
        if word not in self._with:
            found, text, number, last = list[int](), self.text, 0, 0
            at = text.find(word)
            while at >= 0:
                number += text.count(b"\n", last, at)
                found.append(number)
                last = text.find(b"\n", at)
                at = text.find(word, last) if last >= 0 else -1
            self._with[word] = found
        return self._with[word]

    def matching_lines(self, pattern: re.Pattern[str], numbers: Iterable[int]) -> list[int]:
        """Return the numbers of the distinct lines that match a pattern. The method tries only the lines with
        a number in ``numbers``.
        """
        return [number for number in numbers if pattern.search(self._line(number))]

    def _line(self, number: int) -> str:
        if number not in self._lines:
            self._lines[number] = line_text(self._unique[number])
        return self._lines[number]

    def places(self, numbers: Iterable[int]) -> dict[int, list[int]]:
        """Return, for each distinct line in ``numbers``, the positions of all lines that equal it or differ
        only in digits. Positions count from the start of the page.
        """
        found: dict[int, list[int]] = {number: [] for number in numbers}
        wanted = {self._unique[number]: at for number, at in found.items()}
        for part, start in zip(self._parts, self._starts, strict=False) if found else ():
            if part in wanted:
                wanted[part].append(start)
        return found

    def matching_places(self, pattern: re.Pattern[str], numbers: Iterable[int]) -> list[int]:
        """Return the positions of lines that match a pattern. The method tries only the lines whose positions
        :meth:`places` returns for ``numbers``.
        """
        places = sorted(place for of_line in self.places(numbers).values() for place in of_line)
        return [place for place in places if pattern.search(self._raw_line(place))]

    def _raw_line(self, position: int) -> str:
        end = self._ends[position]
        return line_text(self._content[position:end])

    @cached_property
    def _starts(self) -> list[int]:
        return list(accumulate((len(part) + 1 for part in self._parts), initial=0))

    @cached_property
    def _ends(self) -> dict[int, int]:
        return {start: start + len(part) for start, part in zip(self._starts, self._parts, strict=False)}


class _PageSearch:
    """A search over the pages of an output. The object has the patterns, the stems (parts of words such as
    ``fail``), and the lines that the search has found so far.
    """

    def __init__(self, patterns: Iterable[str], stems: Iterable[str], deadline: float) -> None:
        self.found = {pattern: array("q") for pattern in patterns}
        self.suspects: tuple[list[int], list[int]] = [], []
        self._deadline = deadline
        self._stems = {stem.encode(): longest_word(stem) for stem in stems}
        self._finder = _finder(tuple(self.found), tuple(self._stems.values()))

    def page(self, output: Output, page: Page, suspects: list[int]) -> bool:
        """Search one page of the output for all patterns. Return False if the time limit passed before the
        search tried all patterns.

        ``suspects`` are the positions of suspect lines that the search found earlier in the same half of the
        output; the method adds the positions in this page.
        """
        content = output.content(page)
        view = View(content, output.shapes(page))
        has = self._finder.found_in(view.text)
        hits: dict[str, list[int]] = {}
        for pattern, positions in self.found.items():
            if time.monotonic() > self._deadline:
                return False
            groups = [[one.text for one in group if one.word in has] for group in required_words(pattern)]
            if not all(groups):
                continue
            numbers = min((view.lines_with(texts) for texts in groups or [[b""]]), key=len)
            if _names_a_number(pattern):
                at = view.matching_places(compile_line_pattern(pattern), numbers)
                positions.extend(page.start + place for place in _ends(at, _KEPT))
            elif lines := view.matching_lines(compile_line_pattern(pattern), numbers):
                hits[pattern] = lines
        stems = (stem for stem, word in self._stems.items() if word in has)
        some = view.lines_with(stems) if len(suspects) < MOST_SUSPECTS else []
        places = view.places({*some, *(number for lines in hits.values() for number in lines)})
        for pattern, lines in hits.items():
            at = sorted(place for number in lines for place in places[number])
            self.found[pattern].extend(page.start + place for place in _ends(at, _KEPT))
        for number in some:
            suspects += (page.start + place for place in _ends(places[number], _KEPT_ALIKE))
        return True


def _ends(places: list[int], most: int) -> list[int]:
    """Return the first ``most`` and the last ``most`` of the positions."""
    return places if len(places) <= 2 * most else places[:most] + places[-most:]


def search(
    output: Output, patterns: tuple[str, ...], seconds: float, stems: tuple[str, ...] = ()
) -> PatternLines:
    """Search an output from both ends to the middle, because causes are usually near the start or the end.

    Args:
        output: the job output.
        patterns: regular expressions, each for a part of one line.
        seconds: the time limit; the search then returns the lines that it has found.
        stems: lower-case parts of words, such as ``fail``, that mark suspect lines.
    """
    found = _PageSearch(patterns, stems, time.monotonic() + seconds)
    left = set(output.pages)
    for number, page in enumerate(output.pages_from_both_ends()):
        if not found.page(output, page, found.suspects[number % 2]):
            break
        left.discard(page)
    ordered = {
        pattern: array("q", sorted(positions)) if positions else positions
        for pattern, positions in found.found.items()
    }
    gaps = [(page.first, page.last) for page in left] + ([output.missing] if output.missing else [])
    unread = (min(first for first, _ in gaps), max(last for _, last in gaps)) if gaps else None
    return PatternLines(ordered, unread, sorted(found.suspects[0] + found.suspects[1]))


@cache
def _finder(patterns: tuple[str, ...], words: tuple[bytes, ...]) -> WordFinder:
    """Return a finder for the words that the patterns require, and for the words in ``words``."""
    found = (one.word for pattern in patterns for group in required_words(pattern) for one in group)
    return WordFinder((*found, *words))


@cache
def _names_a_number(pattern: str) -> bool:
    """Return whether a pattern contains literal digits. If so, a line may match although another line that
    differs only in digits does not match.
    """
    return any(letter.isdigit() for letter in _OF_ANY_NUMBER.sub("", pattern))
