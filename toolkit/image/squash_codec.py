"""Unpack the blocks of a squashfs, each to a size that is known before."""

import lzma
import zlib
from collections.abc import Callable

from toolkit.errors import BadInput

_NAMES = {1: "gzip", 2: "lzma", 3: "lzo", 4: "xz", 5: "lz4", 6: "zstd"}


def method(number: int) -> str:
    """Return what a compression is called that a superblock has a number for."""
    return _NAMES.get(number, f"method {number}")


def decompressor(number: int, name: str) -> Callable[[bytes, int], bytes]:
    """Return the function for the compression that a superblock names.

    Raises:
        BadInput: for one that is not supported.
    """
    known = {1: _gzip, 4: _xz, 5: _lz4, 6: _zstd}
    if number not in known:
        raise BadInput(
            f"{name}: its squashfs is compressed with {method(number)}",
            fix="readable are gzip, xz, lz4 and zstd: build it again with mksquashfs -comp zstd",
        )
    return known[number]


def _gzip(raw: bytes, expected: int) -> bytes:
    return zlib.decompressobj().decompress(raw, expected)


def _xz(raw: bytes, expected: int) -> bytes:
    return lzma.LZMADecompressor(memlimit=256 << 20).decompress(raw, expected)


def _zstd(raw: bytes, expected: int) -> bytes:
    import zstandard

    return zstandard.ZstdDecompressor(max_window_size=8 << 20).decompress(raw, max_output_size=expected)


def _lz4(raw: bytes, expected: int) -> bytes:
    """Unpack one raw LZ4 block (lz4/lz4:doc/lz4_Block_format.md)."""
    out, position = bytearray(), 0
    while position < len(raw):
        token = raw[position]
        literals, position = _length(raw, position + 1, token >> 4)
        out += raw[position : position + literals]
        position += literals
        if position >= len(raw):
            break
        distance = int.from_bytes(raw[position : position + 2], "little")
        matched, position = _length(raw, position + 2, token & 15)
        if not 0 < distance <= len(out) or len(out) > expected:
            raise ValueError("bad LZ4 block")
        start, length = len(out) - distance, matched + 4
        if length <= distance:
            out += out[start : start + length]
        else:
            # A match may reach into what it is writing: then its bytes repeat.
            out += (out[start:] * (length // distance + 1))[:length]
    if len(out) > expected:
        raise ValueError("LZ4 block is longer than its place")
    return bytes(out)


def _length(raw: bytes, position: int, start: int) -> tuple[int, int]:
    total = start
    if start == 15:
        while True:
            byte = raw[position]
            position += 1
            total += byte
            if byte != 255:
                break
    return total, position
