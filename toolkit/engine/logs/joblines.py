"""Represent job output as numbered lines, each with the rank that wrote the line.

The output stays in bytes, because decoded text may need four times the memory. toolkit decodes only the lines
that it reads.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

LONGEST = 2000
"""Maximum number of characters that toolkit reads from a line."""

_PAGE = 1 << 19
"""Number of bytes that toolkit searches at once."""

_MOST_BYTES = 4 * LONGEST
"""Maximum number of bytes that toolkit reads from a line; a UTF-8 character has at most four bytes (RFC
3629).
"""

_FARTHEST = 1 << 16
"""If a line is longer than this number of bytes, toolkit does not look for the lines after it."""

_NUMBERS = bytes.maketrans(b"123456789", b"000000000")

_BREAK = re.compile(rb"[\r\n]")
"""A pattern for the end of a line. A progress bar ends each of its states with ``\\r``; all these states have
the same line number.
"""

COLOUR = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]")
_COLOUR = re.compile(COLOUR.pattern.decode())
"""A pattern for a terminal's colour codes, which Apptainer prints between ``FATAL:`` and the message."""

LABEL = re.compile(r" *(\d+): ")
"""A pattern for the label with which ``srun --label`` starts a line: the right-aligned task number."""

_TAG = re.compile(
    r"\[(?:rank|default)(\d+)\]: ?"
    r"|(?:\w{3} \w{3} [ \d]\d \d\d:\d\d:\d\d \d{4})?"
    r"\[(?:[\w.@-]{0,80}\d,)?(?:mpirank:)?(\d+)(?:,[\w.-]{1,60})?\]<std(?:out|err|diag)>: ?"
)
"""A pattern for tags with which PyTorch, torchrun, ``mpirun --tag-output`` and horovodrun start a line."""

_NESTED = re.compile(r"\[default\d+\]: ?\[rank(\d+)\]: ?")
"""A pattern for two tags at the start of a line: torchrun's tag has the local rank, and PyTorch's tag after
it has the rank in the job.
"""

_TAG_STARTS = frozenset("[MTWFS")
"""Possible first characters of a rank's tag: a bracket, or the first letter of a weekday in a timestamp."""

_INNER = re.compile(r"(?:[^\"'`%]{1,160}?[\s\]:|]|.{0,400}?\d%\|.{1,400}?\])\[(?:rank|default)(\d+)\]: ?")
"""A pattern for a PyTorch tag after the label of another program (pdsh, Ray, a log collector), or after a
progress bar that does not end its line.
"""

_INNER_TAGS = ("[rank", "[default")


@dataclass(frozen=True, slots=True)
class Line:
    """A line of output: its number in the output (the first line is 1), and the number of the task that wrote
    the line (empty if unknown). ``text`` is the line without ``tag``; ``tag`` names the rank, as in
    ``[rank1]:``.
    """

    number: int
    task: str
    text: str
    tag: str = ""

    @property
    def citation(self) -> str:
        """Return the line in the form in which a finding quotes it: ``line 12: TEXT``."""
        return f"line {self.number}: {(self.tag + self.text).strip()}"


@dataclass(frozen=True, slots=True)
class Page:
    """A part of the output that consists of whole lines: the positions of its start and end, and the numbers
    of its first and last line.
    """

    start: int
    end: int
    first: int
    last: int


class Output:
    """The output of a job. A position is a number of bytes from the start; the position of a line is the
    position of its first byte.

    ``tail`` is the end of an output whose middle toolkit left out; ``missing_lines`` is the number of line
    breaks in the omitted middle.
    """

    def __init__(self, text: str | bytes, tail: str | bytes = b"", missing_lines: int = 0) -> None:
        self._head, self._tail = _raw(text), _raw(tail)
        self._tail_at = len(self._head) + 1
        self.pages = tuple(_pages(self._head, 0, 1))
        self.missing: tuple[int, int] | None = None
        """The line numbers before and after the omitted middle; ``None`` if nothing is omitted."""
        if self._tail:
            first = (self.pages[-1].last if self.pages else 1) + missing_lines
            self.missing = (first - missing_lines, first)
            self.pages += tuple(_pages(self._tail, self._tail_at, first))
        self._starts = [page.start for page in self.pages]

    def content(self, page: Page) -> bytes:
        """Return the bytes of a page; if the page is a very long line, return only the start of the line."""
        piece, at = self._place(page.start)
        return piece[at : min(at + page.end - page.start, at + _PAGE + _MOST_BYTES)]

    @property
    def last_number(self) -> int:
        """Return the number of the last line."""
        return self.pages[-1].last if self.pages else 0

    def before(self, position: int, limit: int) -> list[tuple[int, Line]]:
        """Return the lines directly before the line at ``position``, at most ``limit`` lines, each with its
        position.
        """
        piece, at = self._place(position)
        shift, starts = position - at, list[int]()
        while at > 0 and len(starts) < limit:
            at = max(piece.rfind(b"\n", 0, at - 1), piece.rfind(b"\r", 0, at - 1)) + 1
            starts.append(at + shift)
        return list(self.lines_at(reversed(starts)))

    def shapes(self, page: Page) -> bytes:
        """Return the bytes of a page with every digit replaced by a zero."""
        return self.content(page).translate(_NUMBERS)

    def pages_from_both_ends(self) -> Iterator[Page]:
        """Yield the pages alternately from both ends: the first, the last, the second, the last but one, and
        so on.
        """
        for number in range(len(self.pages)):
            yield self.pages[number // 2] if number % 2 == 0 else self.pages[-1 - number // 2]

    def lines_at(self, positions: Iterable[int]) -> Iterator[tuple[int, Line]]:
        """Yield each of the sorted positions with its line. This method is fast, because it counts each line
        break only once.
        """
        last, number = -1, 0
        for position in positions:
            piece, at = self._place(position)
            page = self.pages[max(bisect_right(self._starts, position) - 1, 0)]
            if last < page.start:
                number, last = page.first, page.start
            number += piece.count(b"\n", self._place(last)[1], at)
            last = position
            found = _BREAK.search(piece, at, at + _MOST_BYTES)
            yield position, parse_line(piece[at : found.start() if found else at + _MOST_BYTES], number)

    def last_with(self, start: str) -> int:
        """Return the position of the last line that starts with ``start``; -1 without such a line."""
        wanted = start.encode()
        for piece, base in ((self._tail, self._tail_at), (self._head, 0)):
            at = piece.rfind(b"\n" + wanted)
            if at >= 0 or piece.startswith(wanted):
                return base + at + 1
        return -1

    def places_after(self, position: int, limit: int) -> Iterator[tuple[int, Line]]:
        """Yield at most ``limit`` lines after ``position``, each with its position. The lines are from the
        task that wrote the line at ``position``.
        """
        piece, at = self._place(position)
        shift = position - at
        own = self.line(position)
        number = own.number
        for _ in range(limit * 16):
            found = _BREAK.search(piece, at, at + _FARTHEST)
            if found is None or found.end() >= len(piece):
                return
            number += found[0] == b"\n"
            at = found.end()
            end = _BREAK.search(piece, at, at + _MOST_BYTES)
            line = parse_line(piece[at : end.start() if end else at + _MOST_BYTES], number)
            if line.task == own.task:
                yield at + shift, line
                limit -= 1
            if not limit:
                return

    def line(self, position: int) -> Line:
        """Return the line that starts at a position."""
        piece, at = self._place(position)
        page = self.pages[max(bisect_right(self._starts, position) - 1, 0)]
        number = page.first + piece.count(b"\n", self._place(page.start)[1], at)
        found = _BREAK.search(piece, at, at + _MOST_BYTES)
        return parse_line(piece[at : found.start() if found else at + _MOST_BYTES], number)

    def following(self, position: int, limit: int) -> Iterator[Line]:
        """Yield the lines of :meth:`places_after` without their positions."""
        return (line for _, line in self.places_after(position, limit))

    def text_after(self, position: int) -> str:
        """Return the text of the line after the line at ``position``, from any task. This method is fast,
        because it does not count lines.
        """
        piece, at = self._place(position)
        found = _BREAK.search(piece, at, at + _FARTHEST)
        if found is None:
            return ""
        end = _BREAK.search(piece, found.end(), found.end() + _MOST_BYTES)
        return line_text(piece[found.end() : end.start() if end else found.end() + _MOST_BYTES])

    def _place(self, position: int) -> tuple[bytes, int]:
        if position < self._tail_at:
            return self._head, position
        return self._tail, position - self._tail_at


def parse_line(raw: bytes, number: int = 0) -> Line:
    """Return a line without colour codes, trailing blanks and the tag of its rank; a label of ``srun
    --label`` remains in the text.
    """
    text = _decode(raw)
    if tag := _tag_of(text):
        return Line(number, next(task for task in tag.groups() if task), text[tag.end() :], tag[0])
    label = LABEL.match(text)
    return Line(number, label[1] if label else "", text)


def line_text(raw: bytes) -> str:
    """Return the text of a line as :func:`parse_line` does. This function is faster than :func:`parse_line`,
    because it returns only the text.
    """
    text = _decode(raw)
    tag = _tag_of(text)
    return text[tag.end() :] if tag else text


def _tag_of(text: str) -> re.Match[str] | None:
    """Return the match object for a tag with a task number at the start of a line; ``None`` without such a
    tag.
    """
    tag = (_NESTED.match(text) or _TAG.match(text)) if text[:1] in _TAG_STARTS else None
    if tag is None and any(start in text for start in _INNER_TAGS):
        return _INNER.match(text)
    return tag


def _decode(raw: bytes) -> str:
    text = raw[:_MOST_BYTES].decode("utf-8", "replace")[:LONGEST]
    return _COLOUR.sub("", text).rstrip() if "\x1b" in text else text.rstrip()


def _raw(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.encode("utf-8", "replace")


def _pages(content: bytes, base: int, number: int) -> Iterator[Page]:
    """Split bytes into pages at line ends. ``base`` is the position of the first byte in the output;
    ``number`` is the number of the first line.
    """
    at = 0
    while at < len(content):
        found = _BREAK.search(content, at + _PAGE)
        end = found.end() if found else len(content)
        following = number + content.count(b"\n", at, end)
        yield Page(base + at, base + end, number, following)
        at, number = end, following
