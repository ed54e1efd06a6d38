"""Make a file in CIFAR's binary format from two files: an image with one sample in each row, and a list of
classes.

A record consists of the class as one byte, then all red, all green and all blue values of the sample. The PNG
image stores the three colours of each pixel together. toolkit restores CIFAR's order of the values, so the
result is identical to CIFAR's published file.
"""

import io
import zlib
from collections.abc import Callable, Iterator
from itertools import accumulate
from typing import IO

from toolkit.errors import Missing

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_COLOURS = 3
_RGB = bytes((8, 2, 0, 0, 0))
"""The last five bytes of the only PNG header that toolkit accepts: 8 bits per value, RGB, not interlaced."""

_CHUNK = 1 << 16
_MOST = 1 << 24
"""Maximum size of a PNG chunk in bytes. PNG encoders write chunks of kilobytes; PNG allows 2 GiB."""

_BYTE = (255).__and__


class RecordFile(io.RawIOBase):
    """A readable file object that contains the records in CIFAR's binary format."""

    def __init__(self, image: IO[bytes], classes: bytes, place: str) -> None:
        self._records = _records(image, classes, place)
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "bytearray | memoryview") -> int:  # type: ignore[override]
        self._rest = self._rest or next(self._records, b"")
        part = self._rest[: len(buffer)]
        buffer[: len(part)] = part
        self._rest = self._rest[len(part) :]
        return len(part)


def _records(image: IO[bytes], classes: bytes, place: str) -> Iterator[bytes]:
    for number, row in enumerate(_rows(image, place)):
        if number == len(classes):
            raise Missing(f"{place}: the list of classes has too few entries for the rows of the image")
        yield b"".join((classes[number : number + 1], *(row[colour::_COLOURS] for colour in range(_COLOURS))))


def _rows(image: IO[bytes], place: str) -> Iterator[bytes]:
    """Yield the rows of a PNG image after undoing the filters of section 9 of the PNG specification."""
    chunks = _chunks(image, place)
    kind, header = next(chunks, (b"", b""))
    if kind != b"IHDR" or header[8:] != _RGB:
        raise Missing(f"{place}: expected a PNG image in RGB with 8 bits per colour, not interlaced")
    length = 1 + _COLOURS * int.from_bytes(header[:4], "big")
    waiting, before = b"", bytes(length - 1)
    for more in _unpacked(chunks, max(_CHUNK, length)):
        waiting += more
        whole = len(waiting) // length * length
        for at in range(0, whole, length):
            filtering = _FILTERS.get(waiting[at])
            if filtering is None:
                raise Missing(f"{place}: the PNG image uses an unknown row filter")
            before = filtering(waiting[at + 1 : at + length], before)
            yield before
        waiting = waiting[whole:]


def _unpacked(chunks: Iterator[tuple[bytes, bytes]], size_limit: int) -> Iterator[bytes]:
    """Yield the decompressed content of a PNG's IDAT chunks, in pieces of at most ``size_limit`` bytes."""
    unpack = zlib.decompressobj()
    for kind, content in chunks:
        rest = content if kind == b"IDAT" else b""
        while rest:
            yield unpack.decompress(rest, size_limit)
            rest = unpack.unconsumed_tail


def _chunks(image: IO[bytes], place: str) -> Iterator[tuple[bytes, bytes]]:
    if image.read(len(_SIGNATURE)) != _SIGNATURE:
        raise Missing(f"{place}: not a PNG image")
    while head := image.read(8):
        size, kind = int.from_bytes(head[:4], "big"), head[4:]
        if size > _MOST:
            raise Missing(f"{place}: the image is damaged")
        content, checksum = image.read(size), image.read(4)
        if int.from_bytes(checksum, "big") != zlib.crc32(kind + content) or len(checksum) < 4:
            raise Missing(f"{place}: the image is damaged or incomplete")
        yield kind, content


def _as_it_is(row: bytes, _: bytes) -> bytes:
    return row


def _sub(row: bytes, _: bytes) -> bytes:
    """Undo PNG's filter Sub, which stores the difference between each value and the value of the same colour
    in the pixel on the left.
    """
    right = bytearray(len(row))
    for colour in range(_COLOURS):
        right[colour::_COLOURS] = bytes(map(_BYTE, accumulate(row[colour::_COLOURS])))
    return bytes(right)


def _by_neighbours(guess: Callable[[int, int, int], int]) -> Callable[[bytes, bytes], bytes]:
    """Return a function that undoes a PNG filter.

    ``guess(left, above, corner)`` predicts a value from its neighbours to the left, above, and above left.
    The filter stores the difference between the value and the prediction.
    """

    def undo(row: bytes, previous_row: bytes) -> bytes:
        right = bytearray(_COLOURS) + row
        above = bytes(_COLOURS) + previous_row
        for at in range(_COLOURS, len(right)):
            left = at - _COLOURS
            right[at] = (right[at] + guess(right[left], above[at], above[left])) & 255
        return bytes(right[_COLOURS:])

    return undo


def _above(_: int, above: int, __: int) -> int:
    return above


def _mean(left: int, above: int, _: int) -> int:
    return (left + above) // 2


def _paeth(left: int, above: int, corner: int) -> int:
    """Return the value (left, above or corner) that is closest to left + above - corner. If two values are
    equally close, prefer ``left``, then ``above``.
    """
    middle = left + above - corner
    return min((left, above, corner), key=lambda value: abs(middle - value))


_FILTERS: dict[int, Callable[[bytes, bytes], bytes]] = {
    0: _as_it_is,
    1: _sub,
    2: _by_neighbours(_above),
    3: _by_neighbours(_mean),
    4: _by_neighbours(_paeth),
}
