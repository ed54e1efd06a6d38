"""Positions in gzip streams to resume from, so that going back does not start again."""

from dataclasses import dataclass
from typing import Protocol

_MOST = 512
"""The limit for all streams of an image together. Each mark takes some 40 kB, mostly the history (RFC
1951)."""
_APART = 2 << 20


class Unpacker(Protocol):
    """The type of ``zlib.decompressobj``, which has no public name."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    @property
    def unconsumed_tail(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...
    def copy(self) -> "Unpacker": ...


@dataclass(frozen=True, slots=True)
class Mark:
    """A position to resume from: its unpacked and its stored offset, and a copy of the decoder."""

    at: int
    fed: int
    unpacker: Unpacker


class Marks:
    """The marks of all streams of an image. ``apart`` is the distance between two marks, in unpacked
    bytes."""

    def __init__(self) -> None:
        self._lists: list[list[Mark]] = []
        self._count = 0
        self.apart = _APART

    def begin(self, first: Mark) -> list[Mark]:
        """Return the marks of a new stream; its first mark is always kept."""
        self._lists.append([first])
        return self._lists[-1]

    def note(self, marks: list[Mark], mark: Mark) -> None:
        """Add a mark; if there are too many, drop every second mark of each stream."""
        marks.append(mark)
        self._count += 1
        if self._count > _MOST:
            for each in self._lists:
                del each[1::2]
            self._count = sum(len(each) - 1 for each in self._lists)
            self.apart *= 2
