"""Job output as numbered lines that know which rank wrote them; pure.

The output stays as bytes: a line becomes text when it is looked at, as text may take four times the memory.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

LONGEST = 2000
"""Characters of a line that are looked at."""

_PAGE = 1 << 19
"""Bytes that are searched at once."""

_MOST_BYTES = 4 * LONGEST
"""A character of UTF-8 has at most four bytes (RFC 3629)."""

_FARTHEST = 1 << 16
"""Bytes within which a line has to end for its followers to be looked at."""

_BREAK = re.compile(rb"[\r\n]")
"""A progress bar goes back by ``\\r``; what it wrote over are lines of one number."""

_COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
"""What colours a word where a terminal is: Apptainer does it between ``FATAL:`` and what follows."""

_LABEL = re.compile(r" *(\d+): ")
"""What ``srun --label`` puts before a line: the task number, padded to the widest."""

_TAG = re.compile(r"\[(?:rank|default)(\d+)\]: ?|\[(?:\d+,)?(\d+)\]<std(?:out|err|diag)>: ?")
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

    def line(self, position: int) -> Line:
        """Return the line that begins at a position."""
        piece, at = self._place(position)
        page = self.pages[max(bisect_right(self._starts, position) - 1, 0)]
        number = page.first + piece.count(b"\n", self._place(page.start)[1], at)
        found = _BREAK.search(piece, at, at + _MOST_BYTES)
        return parsed(piece[at : found.start() if found else at + _MOST_BYTES], number)

    def following(self, position: int, most: int) -> Iterator[Line]:
        """Yield the next lines of the task that wrote the line at ``position``."""
        piece, at = self._place(position)
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
                yield line
                most -= 1
            if not most:
                return

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
