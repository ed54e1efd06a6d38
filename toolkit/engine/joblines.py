"""Job output as numbered lines that know which rank wrote them; pure."""

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

_MOST_LINES = 200_000
"""Lines of output that are looked at, from both ends; causes stand at the beginning or the end."""

_LONGEST = 2000
"""Characters of a line that are looked at."""

_COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
"""What colours a word where a terminal is: Apptainer does it between ``FATAL:`` and what follows."""

_LABEL = re.compile(r" *(\d+): ")
"""What ``srun --label`` puts before a line: the task number, padded to the widest."""

_TAG = re.compile(r"\[(?:rank|default)(\d+)\]: ?|\[(?:\d+,)?(\d+)\]<std(?:out|err|diag)>: ?")
"""What PyTorch and torchrun, mpirun --tag-output and horovodrun put there; patterns look behind it."""

_NUMBERS = bytes.maketrans(b"123456789", b"000000000")

_OF_ANY_NUMBER = re.compile(r"0-9|\{\d*,?\d*\}")
"""What has digits in a pattern and asks for no number: the range of all, and how often something stands."""


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


class Output:
    """What a job wrote, cut to what can be looked at.

    ``tail`` is the end of an output whose middle, with ``skipped`` line breaks, was left out.
    """

    def __init__(self, text: str, tail: str = "", skipped: int = 0) -> None:
        raw = _numbered(text, 1)
        if tail:
            raw += _numbered(tail, text.count("\n") + skipped + 1)
        self.lines = [_line(number, part) for number, part in raw]
        self._text = "\n".join(line.text for line in self.lines)
        self._starts = [0]
        for line in self.lines:
            self._starts.append(self._starts[-1] + len(line.text) + 1)
        self._shapes = _shapes(self._text)

    def matching(self, pattern: re.Pattern[str]) -> Iterator[int]:
        """Yield the positions of the lines in which a pattern is found.

        All lines are searched at once, which is fast; each hit is then looked for in its line alone.
        Most patterns are found nowhere, which the few shapes that the lines of training have tell sooner.
        """
        if not _names_a_number(pattern.pattern) and not pattern.search(self._shapes):
            return
        last = -1
        for hit in pattern.finditer(self._text):
            first = bisect_right(self._starts, hit.start()) - 1
            end = bisect_right(self._starts, max(hit.start(), hit.end() - 1)) - 1
            for position in range(max(first, last + 1), min(end, len(self.lines) - 1) + 1):
                last = position
                if pattern.search(self.lines[position].text):
                    yield position

    def following(self, position: int, most: int) -> Iterator[Line]:
        """Yield the next lines of the task that wrote the line at ``position``."""
        task = self.lines[position].task
        for line in self.lines[position + 1 : position + 1 + most * 16]:
            if line.task == task:
                yield line
                most -= 1
            if not most:
                return


def _numbered(text: str, first: int) -> list[tuple[int, str]]:
    """Number the lines as an editor does; what a progress bar wrote over shares one number."""
    numbered = list(enumerate(text.split("\n"), start=first))
    half = _MOST_LINES // 2
    kept = numbered if len(numbered) <= _MOST_LINES else numbered[:half] + numbered[-half:]
    return [(number, part) for number, line in kept for part in line.split("\r")]


def _shapes(text: str) -> str:
    """Return the lines without their numbers (0 for each digit), those that are then equal once."""
    masked = text.encode("utf-8", "surrogatepass").translate(_NUMBERS)
    return b"\n".join(dict.fromkeys(masked.split(b"\n"))).decode("utf-8", "surrogatepass")


@cache
def _names_a_number(pattern: str) -> bool:
    """Tell whether the numbers of a line decide whether a pattern is found in it."""
    return any(letter.isdigit() for letter in _OF_ANY_NUMBER.sub("", pattern))


def _line(number: int, text: str) -> Line:
    text = _COLOUR.sub("", text[:_LONGEST]).rstrip()
    if tag := _TAG.match(text):
        return Line(number, tag[1] or tag[2], text[tag.end() :], tag[0])
    label = _LABEL.match(text)
    return Line(number, label[1] if label else "", text)
