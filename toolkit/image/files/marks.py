"""Save the states of gzip decoders, so that a backward read need not start from the beginning."""

from dataclasses import dataclass
from typing import Protocol

_MOST = 512
"""Maximum number of saved states for all streams of an image; each state takes about 40 kB (RFC 1951)."""
_APART = 2 << 20


class Unpacker(Protocol):
    """The type of the objects that ``zlib.decompressobj()`` returns; zlib does not export the name of this
    type.
    """

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
    """A copy of a decoder, with its position in the unpacked content (``offset``) and in the gzip file
    (``input_offset``).
    """

    offset: int
    input_offset: int
    unpacker: Unpacker


class Marks:
    """The saved decoder states of all gzip streams of an image.

    ``apart`` is the minimum distance between two saved states of a stream, in unpacked bytes.
    """

    def __init__(self) -> None:
        self._lists: list[list[Mark]] = []
        self._count = 0
        self.apart = _APART

    def begin(self, mark: Mark) -> list[Mark]:
        """Return the list of saved states of a new stream. The list starts with ``mark``, which :meth:`note`
        never removes.
        """
        self._lists.append([mark])
        return self._lists[-1]

    def note(self, marks: list[Mark], mark: Mark) -> None:
        """Add a decoder state to a stream's list.

        If the lists of all streams together then have too many states, remove every second state from each
        list, and double ``apart``.
        """
        marks.append(mark)
        self._count += 1
        if self._count > _MOST:
            for each in self._lists:
                del each[1::2]
            self._count = sum(len(each) - 1 for each in self._lists)
            self.apart *= 2
