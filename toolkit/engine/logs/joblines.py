"""Job output as numbered lines that know which rank wrote them; pure.

The output stays as bytes: a line becomes text when it is looked at, as text may take four times the memory.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

LONGEST = 2000
"""Characters of a line that are looked at."""

_PAGE = 1 << 19
"""Bytes that are searched at once."""

_MOST_BYTES = 4 * LONGEST
"""A character of UTF-8 has at most four bytes (RFC 3629)."""

_FARTHEST = 1 << 16
"""Bytes within which a line has to end for its followers to be looked at."""

_NUMBERS = bytes.maketrans(b"123456789", b"000000000")

_BREAK = re.compile(rb"[\r\n]")
"""A progress bar goes back by ``\\r``; what it wrote over are lines of one number."""

_COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
"""What colours a word where a terminal is: Apptainer does it between ``FATAL:`` and what follows."""

_LABEL = re.compile(r" *(\d+): ")
"""What ``srun --label`` puts before a line: the task number, padded to the widest."""

_TAG = re.compile(r"\[(?:rank|default)(\d+)\]: ?|\[(?:[\w.@-]{0,80}\d,)?(\d+)\]<std(?:out|err|diag)>: ?")
"""What PyTorch and torchrun, mpirun --tag-output and horovodrun put there; patterns look behind it."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line, its number as an editor counts, and the task that wrote it (empty text: nobody says)."""

    number: int
    task: str
    text: str
    tag: str = ""

    @property
    def cited(self) -> str:
        """Return the line as evidence."""
        return f"line {self.number}: {(self.tag + self.text).strip()}"


@dataclass(frozen=True, slots=True)
class Page:
    """Neighbouring lines: the positions of their beginning and end, and the numbers of the first and last."""

    start: int
    end: int
    first: int
    last: int


class Output:
    """What a job wrote. A position is that of a byte; each line has the position at which it begins.

    ``tail`` is the end of an output whose middle, with ``skipped`` line breaks, was left out.
    """

    def __init__(self, text: str | bytes, tail: str | bytes = b"", skipped: int = 0) -> None:
        self._head, self._tail = _raw(text), _raw(tail)
        self._tail_at = len(self._head) + 1
        self.pages = tuple(_pages(self._head, 0, 1))
        self.missing: tuple[int, int] | None = None
        """The numbers of the lines between which the middle was left out."""
        if self._tail:
            first = (self.pages[-1].last if self.pages else 1) + skipped
            self.missing = (first - skipped, first)
            self.pages += tuple(_pages(self._tail, self._tail_at, first))
        self._starts = [page.start for page in self.pages]

    def content(self, page: Page) -> bytes:
        """Return a page; of a line that is far longer than what is looked at, the beginning."""
        piece, at = self._place(page.start)
        return piece[at : min(at + page.end - page.start, at + _PAGE + _MOST_BYTES)]

    @property
    def last_number(self) -> int:
        """Return the number of the last line."""
        return self.pages[-1].last if self.pages else 0

    def before(self, position: int, most: int) -> list[tuple[int, Line]]:
        """Return the lines before the one at ``position``, at most so many, with their positions."""
        piece, at = self._place(position)
        shift, starts = position - at, list[int]()
        while at > 0 and len(starts) < most:
            at = max(piece.rfind(b"\n", 0, at - 1), piece.rfind(b"\r", 0, at - 1)) + 1
            starts.append(at + shift)
        return list(self.lines_at(reversed(starts)))

    def shapes(self, page: Page) -> bytes:
        """Return a page with a zero in place of every digit."""
        return self.content(page).translate(_NUMBERS)

    def pages_from_both_ends(self) -> Iterator[Page]:
        """Yield the first page, the last, the second, the last but one, and so on."""
        for number in range(len(self.pages)):
            yield self.pages[number // 2] if number % 2 == 0 else self.pages[-1 - number // 2]

    def lines_at(self, positions: Iterable[int]) -> Iterator[tuple[int, Line]]:
        """Yield the lines that begin at ordered positions; line breaks are counted once."""
        last, number = -1, 0
        for position in positions:
            piece, at = self._place(position)
            page = self.pages[max(bisect_right(self._starts, position) - 1, 0)]
            if last < page.start:
                number, last = page.first, page.start
            number += piece.count(b"\n", self._place(last)[1], at)
            last = position
            found = _BREAK.search(piece, at, at + _MOST_BYTES)
            yield position, parsed(piece[at : found.start() if found else at + _MOST_BYTES], number)

    def places_after(self, position: int, most: int) -> Iterator[tuple[int, Line]]:
        """Yield the next lines of the task that wrote the line at ``position``, with their positions."""
        piece, at = self._place(position)
        shift = position - at
        own = self.line(position)
        number = own.number
        for _ in range(most * 16):
            found = _BREAK.search(piece, at, at + _FARTHEST)
            if found is None or found.end() >= len(piece):
                return
            number += found[0] == b"\n"
            at = found.end()
            end = _BREAK.search(piece, at, at + _MOST_BYTES)
            line = parsed(piece[at : end.start() if end else at + _MOST_BYTES], number)
            if line.task == own.task:
                yield at + shift, line
                most -= 1
            if not most:
                return

    def line(self, position: int) -> Line:
        """Return the line that begins at a position."""
        piece, at = self._place(position)
        page = self.pages[max(bisect_right(self._starts, position) - 1, 0)]
        number = page.first + piece.count(b"\n", self._place(page.start)[1], at)
        found = _BREAK.search(piece, at, at + _MOST_BYTES)
        return parsed(piece[at : found.start() if found else at + _MOST_BYTES], number)

    def following(self, position: int, most: int) -> Iterator[Line]:
        """Yield the next lines of the task that wrote the line at ``position``."""
        return (line for _, line in self.places_after(position, most))

    def _place(self, position: int) -> tuple[bytes, int]:
        if position < self._tail_at:
            return self._head, position
        return self._tail, position - self._tail_at


def parsed(raw: bytes, number: int = 0) -> Line:
    """Return a line without its colours, its end of blanks and what names its task."""
    text = raw[:_MOST_BYTES].decode("utf-8", "replace")[:LONGEST]
    text = _COLOUR.sub("", text).rstrip() if "\x1b" in text else text.rstrip()
    if tag := _TAG.match(text):
        return Line(number, tag[1] or tag[2], text[tag.end() :], tag[0])
    label = _LABEL.match(text)
    return Line(number, label[1] if label else "", text)


def _raw(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.encode("utf-8", "replace")


def _pages(piece: bytes, base: int, number: int) -> Iterator[Page]:
    """Cut at ends of lines; ``base`` is the position of the first byte, ``number`` that of the first line."""
    at = 0
    while at < len(piece):
        found = _BREAK.search(piece, at + _PAGE)
        end = found.end() if found else len(piece)
        following = number + piece.count(b"\n", at, end)
        yield Page(base + at, base + end, number, following)
        at, number = end, following
