"""Read gzip and zstd files at any offset, with limits on the unpacked size.

A backward read is a read at an earlier offset than the decoder's current position. toolkit saves the state of
a gzip decoder every few megabytes, so that backward reads are fast. The library ``zstandard`` cannot save the
state of a decoder. toolkit therefore starts each backward read in a zstd file from the beginning of the file.
For a zstd source, ``slow`` is true, so that callers cache the content that they need later.
"""

import bisect
import io
import zlib
from typing import IO, TYPE_CHECKING, cast

from toolkit.errors import BadInput, Damaged
from toolkit.image.files.bounded import Budget
from toolkit.image.files.marks import Mark, Unpacker
from toolkit.image.files.source import ByteSource

if TYPE_CHECKING:
    from zstandard import ZstdDecompressionReader

_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
_OTHERS = {b"BZh": "bzip2", b"\xfd7zXZ\0": "xz", b"LZIP": "lzip", b"\x04\x22\x4d\x18": "lz4"}
_FEED = 1 << 15
_CHUNK = 1 << 18
_WINDOW = 32 << 20
"""Maximum size in bytes of a zstd window, the unpacked data that a decoder keeps in memory. ``zstd -19``
needs 8 MiB, and ``zstd --ultra -20`` needs 32 MiB."""


def is_packed(head: bytes) -> bool:
    """Return whether the first bytes of a file are the magic bytes of a compressed format."""
    return _is_zstd(head) or head.startswith((_GZIP, *_OTHERS))


def _is_zstd(head: bytes) -> bool:
    # A zstd file starts with a frame of compressed data or with a skippable frame (RFC 8878, 3.1.2).
    return head.startswith(_ZSTD) or (head[1:4] == b"\x2a\x4d\x18" and head[0] & 0xF0 == 0x50)


def inflate(source: ByteSource, name: str, budget: Budget) -> ByteSource | None:
    """Return the unpacked content of a gzip or zstd source, or None if the source is not compressed.

    ``name`` is the source's name in error messages.

    Raises:
        BadInput: if the source is compressed with bzip2, xz, lzip or lz4.
    """
    head = source.read_at(0, 6)
    if head.startswith(_GZIP):
        return GzipSource(source, name, budget)
    if _is_zstd(head):
        return ZstdSource(source, name, budget)
    for magic, format_name in _OTHERS.items():
        if head.startswith(magic):
            raise BadInput(
                f"{name}: compressed with {format_name}; toolkit reads only gzip and zstd",
                fix="unpack the file, or compress it with gzip or zstd",
            )
    return None


class _Unpacked:
    """Content that toolkit unpacks chunk by chunk; ``_at`` is the offset of the end of the current chunk."""

    def __init__(self, source: ByteSource, name: str, budget: Budget) -> None:
        self._source, self._name, self._budget = source, name, budget
        self._chunk, self._at = b"", 0

    def read_at(self, offset: int, count: int) -> bytes:
        start = offset - (self._at - len(self._chunk))
        if 0 <= start <= len(self._chunk) - count:
            return self._chunk[start : start + count]
        self._go(offset)
        out = bytearray()
        while len(out) < count:
            start = offset + len(out) - (self._at - len(self._chunk))
            piece = self._chunk[start : start + count - len(out)]
            out += piece
            if not piece and not self._advance():
                break
        return bytes(out)

    def _go(self, offset: int) -> None:
        """Prepare a read at ``offset``, which may be before the current chunk."""
        raise NotImplementedError

    def _advance(self) -> bool:
        """Unpack the next chunk; return False at the end of the content."""
        raise NotImplementedError

    def _broken(self, fault: str) -> Damaged:
        return Damaged(f"{self._name}: the image is damaged: {fault}", fix="copy or save the image again")


class GzipSource(_Unpacked):
    """The content of a gzip file, which consists of one or several members (RFC 1952)."""

    def __init__(self, source: ByteSource, name: str, budget: Budget) -> None:
        super().__init__(source, name, budget)
        self._unpacker: Unpacker = zlib.decompressobj(31)
        self._marks = budget.marks.begin(Mark(0, 0, self._unpacker.copy()))
        self._waiting, self._fed = b"", 0
        self._member = 0

    @property
    def slow(self) -> bool:
        return self._source.slow

    def _go(self, offset: int) -> None:
        """Restore the last saved decoder state at or before ``offset``.

        Do nothing if ``offset`` is in the current chunk, or if ``offset`` is after this chunk and no saved
        state is between the chunk and ``offset``.
        """
        mark = self._marks[bisect.bisect(self._marks, offset, key=lambda m: m.offset) - 1]
        if offset < self._at - len(self._chunk) or mark.offset > self._at:
            self._unpacker = mark.unpacker.copy()
            self._chunk, self._at, self._waiting, self._fed = b"", mark.offset, b"", mark.input_offset

    def _advance(self) -> bool:
        while True:
            if self._unpacker.eof and not self._next_member():
                return False
            data = self._waiting or self._take()
            ended = not data
            try:
                out = self._unpacker.decompress(data, _CHUNK)
            except zlib.error as error:
                raise self._broken(f"decompression fails ({error})") from error
            self._waiting = self._unpacker.unconsumed_tail
            if out:
                self._budget.inflate(len(out))
                self._chunk = out
                self._at += len(out)
                self._note()
                return True
            if ended and not self._unpacker.eof:
                raise self._broken("it is incomplete")

    def _take(self) -> bytes:
        data = self._source.read_at(self._fed, _FEED)
        self._fed += len(data)
        return data

    def _next_member(self) -> bool:
        """Start the next gzip member; return False if only padding follows, which gzip(1) ignores."""
        rest = self._unpacker.unused_data or self._take()
        if len(rest) < len(_GZIP):
            rest += self._take()
        if not rest.startswith(_GZIP):
            return False
        # Empty gzip members count in the budget too, because a malicious file may contain millions of them.
        self._budget.inflate(1 << 10)
        self._unpacker, self._waiting = zlib.decompressobj(31), rest
        return True

    def _note(self) -> None:
        if self._at >= self._marks[-1].offset + self._budget.marks.apart and not self._unpacker.eof:
            mark = Mark(self._at, self._fed - len(self._waiting), self._unpacker.copy())
            self._budget.marks.note(self._marks, mark)


class _Feed(io.RawIOBase):
    """A file object from which ``zstandard`` reads the bytes of a source."""

    def __init__(self, source: ByteSource) -> None:
        self._source, self._at = source, 0

    def read(self, size: int = -1) -> bytes:
        data = self._source.read_at(self._at, size if size > 0 else _FEED)
        self._at += len(data)
        return data


class ZstdSource(_Unpacked):
    """The content of a zstd file, which consists of one or several frames (RFC 8878).

    ``zstandard`` reports no error for a truncated frame, so callers must check the length of the content.
    """

    slow = True

    def __init__(self, source: ByteSource, name: str, budget: Budget) -> None:
        super().__init__(source, name, budget)
        self._reader: ZstdDecompressionReader | None = None

    def rest(self) -> None:
        """Free the decoder and its window; the next read starts from the beginning of the file."""
        self._chunk, self._at, self._reader = b"", 0, None

    def _go(self, offset: int) -> None:
        if offset < self._at - len(self._chunk):
            self.rest()

    def _begun(self) -> "ZstdDecompressionReader":
        import zstandard

        unpacker = zstandard.ZstdDecompressor(max_window_size=_WINDOW)
        feed = cast("IO[bytes]", _Feed(self._source))
        return unpacker.stream_reader(feed, read_size=_FEED, read_across_frames=True)

    def _advance(self) -> bool:
        import zstandard

        self._reader = self._reader or self._begun()
        try:
            out = self._reader.read(_CHUNK)
        except zstandard.ZstdError as error:
            reason = str(error).removeprefix("zstd decompress error: ")
            raise self._broken(f"decompression fails ({reason})") from error
        self._budget.inflate(len(out))
        self._chunk = out or self._chunk
        self._at += len(out)
        return bool(out)
