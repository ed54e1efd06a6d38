"""Decompress one block into a limited number of bytes, whatever size the block claims to have.

``zstandard.decompress(max_output_size=…)`` trusts the size in a zstd frame, so this module does not use that
function. Each decoder of this module writes into a limited buffer and stops at the end of the buffer.
"""

import io
import lzma
import zlib
from collections.abc import Callable

WINDOW = 8 << 20
"""Maximum size in bytes of a zstd window, the data that a decoder keeps in memory (RFC 8878, 3.1.1.1.2)."""
_DICTIONARY = 16 << 20
"""Memory limit of the xz decoder in bytes. This limit is sufficient, because mksquashfs's xz dictionary is at
most as large as a block, and a block has at most 1 MiB.
"""


def expand(codec: str, data: bytes, limit: int) -> bytes:
    """Return the unpacked content of one compressed block.

    Args:
        codec: ``gzip`` (a zlib stream), ``xz``, ``lz4`` (one raw block) or ``zstd`` (one frame).
        data: the compressed block.
        limit: the maximum size of the unpacked content in bytes.

    Raises:
        ValueError: if the block is damaged, truncated, or unpacks to more than ``limit`` bytes.
        KeyError: if ``codec`` is not ``gzip``, ``xz``, ``lz4`` or ``zstd``.
    """
    out = CODECS[codec](data, limit)
    if len(out) > limit:
        raise ValueError(f"it expands to more than {limit} bytes")
    return out


def _gzip(data: bytes, limit: int) -> bytes:
    unpacker = zlib.decompressobj()
    try:
        out = unpacker.decompress(data, limit + 1)
    except zlib.error as error:
        raise ValueError(str(error)) from error
    return _whole(out, limit, ended=unpacker.eof)


def _xz(data: bytes, limit: int) -> bytes:
    try:
        unpacker = lzma.LZMADecompressor(memlimit=_DICTIONARY)
        out = unpacker.decompress(data, limit + 1)
    except lzma.LZMAError as error:
        raise ValueError(str(error)) from error
    return _whole(out, limit, ended=unpacker.eof)


def _zstd(data: bytes, limit: int) -> bytes:
    import zstandard

    try:
        named = zstandard.frame_content_size(data)  # -1 if the frame does not contain its size
        if named > limit:
            raise ValueError(f"it claims a size of {named} bytes, more than {limit}")
        unpacker = zstandard.ZstdDecompressor(max_window_size=WINDOW)
        with unpacker.stream_reader(io.BytesIO(data)) as reader:
            out = reader.read(limit + 1)
    except zstandard.ZstdError as error:
        raise ValueError(str(error)) from error
    return _whole(out, limit, ended=named in {-1, len(out)})


def _whole(content: bytes, limit: int, *, ended: bool) -> bytes:
    if not ended and len(content) <= limit:
        raise ValueError("it is incomplete")
    return content


def _lz4(data: bytes, limit: int) -> bytes:
    """Unpack one raw LZ4 block (lz4/lz4:doc/lz4_Block_format.md); check each length before copying bytes."""
    out, position = bytearray(), 0
    while position < len(data):
        token = data[position]
        literals, position = _length(data, position + 1, token >> 4)
        if literals > min(limit - len(out), len(data) - position):
            raise ValueError("a length in the LZ4 data exceeds the block")
        out += data[position : position + literals]
        position += literals
        if position >= len(data):
            break
        distance = int.from_bytes(data[position : position + 2], "little")
        matched, position = _length(data, position + 2, token & 15)
        length = matched + 4
        if not 0 < distance <= len(out) or length > limit - len(out):
            raise ValueError("a copy in the LZ4 data exceeds the block")
        start = len(out) - distance
        if length <= distance:
            out += out[start : start + length]
        else:
            # A match copies earlier output, from `distance` bytes before the end of the output. If `length`
            # is larger than `distance`, the copied bytes repeat.
            out += (out[start:] * (length // distance + 1))[:length]
    return bytes(out)


def _length(data: bytes, position: int, start: int) -> tuple[int, int]:
    """Return the length of a run of literals or of a match in an LZ4 block, and the position after the
    bytes that encode this length.

    ``start`` is the four-bit length in the token. If ``start`` is 15, the length continues in the bytes from
    ``position``: toolkit adds these bytes to ``start``, up to and including the first byte below 255.
    """
    total = start
    if start == 15:
        while True:
            if position >= len(data):
                raise ValueError("it is incomplete")
            total += data[position]
            position += 1
            if data[position - 1] != 255:
                break
    return total, position


CODECS: dict[str, Callable[[bytes, int], bytes]] = {"gzip": _gzip, "xz": _xz, "lz4": _lz4, "zstd": _zstd}
