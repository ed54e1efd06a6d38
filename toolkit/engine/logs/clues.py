"""Find lines of job output that may report a fault, and their class of faults."""

import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from toolkit.engine.logs.codes import deciding_code
from toolkit.engine.logs.joblines import Line, Output
from toolkit.engine.logs.logsearch import View
from toolkit.knowledge.signatures import FaultLine, Role, fault_lines, stems
from toolkit.model.finding import Retry

HEAD = "Traceback (most recent call last)"
"""The first line of a Python traceback."""

_KEPT = 40
"""Number of first and of last lines to keep on a page, of lines that differ only in their numbers."""

_MOST = 2000
"""Number of lines to classify at each end of the output."""

_BEFORE = re.compile(
    r"^(?: *\d+: ?)?(?:\[(?:rank|default)?\d+\]: ?|\[[^\]\s]{0,60}\d+\]<std(?:out|err)>: ?)?"
    r"(?:\([^()]{0,60}pid=\d+[^()]{0,40}\) )?"
    r"(?:(?:ERROR|WARNING|INFO) (?! ?: ))?"
    r"(?:\[?(?:\d{4}-)?\d\d-\d\d[T ]\d\d:\d\d:\d\d[^\]\s]{0,12}\]?(?: TP\d+\]| \S{1,20}\])?[ :,-]{0,3})?"
    r"(?:\[[\w./]{1,60}\.py:\d+\] )?(?: *what\(\): +)?"
)
"""Text before the words of a program: label of the rank, process, level, time, file of the logger."""


_BARE = re.compile(r"^(?:\w{1,60}\.){0,8}[A-Z]\w{0,60}(?:Error|Exception):$")
"""An exception whose message is on the next line; workflow managers print it without a traceback."""


@dataclass(frozen=True, slots=True)
class Clue:
    """A line that may report a fault; ``strength`` as in ``faultlines.toml``."""

    position: int
    line: Line
    class_: str
    strength: int
    role: Role
    retry: Retry | None = None


def strip_label(text: str) -> str:
    """Return a line without the names of its rank, process and time."""
    found = _BEFORE.match(text)
    return text[found.end() :] if found else text


def clues(output: Output, seconds: float) -> list[Clue]:
    """Return the lines that may report a fault, in order.

    Args:
        output: the job output.
        seconds: time limit; the search starts with the first and last pages.
    """
    until = time.monotonic() + seconds
    positions: set[int] = set()
    for page in output.pages_from_both_ends():
        if time.monotonic() > until:
            break
        positions.update(page.start + at for at in _candidate_lines(View(output.shapes(page))))
    ordered = sorted(positions)
    if len(ordered) > 2 * _MOST:
        ordered = ordered[:_MOST] + ordered[-_MOST:]
    return list(_classified(output, ordered))


def _classified(output: Output, positions: Iterable[int]) -> Iterator[Clue]:
    for position, line in output.lines_at(positions):
        if HEAD in line.text:
            yield Clue(position, line, "", 0, "cause")
            continue
        whole = _with_message(output, position, line)
        row = classify(strip_label(whole.text))
        if row is not None:
            yield Clue(position, whole, row.class_, row.strength, row.role, row.retry)


def _with_message(output: Output, position: int, line: Line) -> Line:
    """Return a line that only names an exception, with the message on the next line."""
    if not _BARE.match(strip_label(line.text)):
        return line
    words = next((after.text.strip() for after in output.following(position, 1)), "")
    return Line(line.number, line.task, f"{line.text} {words}".rstrip(), line.tag)


def _candidate_lines(view: View) -> Iterator[int]:
    """Yield the positions of lines that contain a part of a word of faults."""
    found: set[int] = set()
    text = view.text.lower()
    for stem in stems():
        at = text.find(stem)
        while at >= 0:
            number, end = view.unique_at(at)
            found.add(number)
            at = text.find(stem, end)
    for number in found:
        places = view.places_of(number)
        yield from places if len(places) <= 2 * _KEPT else (*places[:_KEPT], *places[-_KEPT:])


def classify(text: str) -> FaultLine | None:
    """Return the row that matches a line; ``None`` if the line is harmless or no row matches.

    Workflow managers indent what a program wrote.
    """
    row = _row_of(text.lstrip())
    return None if row is None or row.role == "harmless" else row


def is_harmless(text: str) -> bool:
    """Return whether a row of harmless lines matches a line."""
    row = _row_of(text.lstrip())
    return row is not None and row.role == "harmless"


@lru_cache(maxsize=8192)
def _row_of(text: str) -> FaultLine | None:
    return next((found for row in fault_lines() if (found := _found(row, text))), None)


def _found(row: FaultLine, text: str) -> FaultLine | None:
    """Return the row, or the class of the error code in the line, if the row matches the line."""
    if not row.codes:
        return row if row.finds(text) else None
    code = deciding_code(text, row.codes)
    if code is None:
        return None
    role: Role = "consequence" if code.role == "consequence" else "cause"
    strength = min(row.strength, 3) if role == "consequence" else row.strength
    return FaultLine(class_=code.class_, strength=strength, role=role, retry=code.retry)
