"""Read bytes at any offset of a file, of a part of a file, or of a file whose digest toolkit verifies."""

import hashlib
import os
from typing import BinaryIO, Protocol

from toolkit.errors import CheckFailed

_STEP = 1 << 20


class ByteSource(Protocol):
    """A source of bytes.

    ``slow`` is true if backward reads must start from the beginning of the source.
    """

    @property
    def slow(self) -> bool: ...

    def read_at(self, offset: int, count: int) -> bytes:
        """Return ``count`` bytes from ``offset``, or fewer at the end of the source."""


class FileSource:
    """The bytes of an open file."""

    slow = False

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def read_at(self, offset: int, count: int) -> bytes:
        return os.pread(self._file.fileno(), count, offset)


class SourceRange:
    """A range of another source, for example one member of an uncompressed tar."""

    def __init__(self, source: ByteSource, start: int, size: int) -> None:
        self._source, self._start, self.size = source, start, size

    @property
    def slow(self) -> bool:
        return self._source.slow

    def read_at(self, offset: int, count: int) -> bytes:
        count = min(count, self.size - offset)
        return self._source.read_at(self._start + offset, count) if count > 0 else b""


class HashingSource:
    """A source that computes the digest of its bytes while callers read them, so that toolkit reads each byte
    only once.

    ``digest`` is the expected digest, for example ``sha256:12ab…``. For a source without an expected digest,
    ``digest`` is the algorithm, for example ``sha256:``. ``name`` is the source's name in messages.
    """

    def __init__(self, source: ByteSource, digest: str, name: str) -> None:
        algorithm, _, self._wanted = digest.partition(":")
        self._source, self._name, self._read = source, name, 0
        self._hash = hashlib.new(algorithm)

    @property
    def slow(self) -> bool:
        return self._source.slow

    def read_at(self, offset: int, count: int) -> bytes:
        data = self._source.read_at(offset, count)
        if offset <= self._read < offset + len(data):
            self._hash.update(data[self._read - offset :])
            self._read = offset + len(data)
        return data

    def finish(self) -> str:
        """Read the remaining bytes, and return the digest of the whole source in hexadecimal."""
        while self.read_at(self._read, _STEP):
            pass
        return self._hash.hexdigest()

    def check(self) -> None:
        """Read the remaining bytes, and compare the digest of the whole source with the expected digest.

        Raises:
            CheckFailed: if the digest is wrong.
        """
        if (digest := self.finish()) != self._wanted:
            raise CheckFailed(
                f"{self._name}: its content does not match its digest in the image: "
                f"its {self._hash.name} is {digest[:12]}…, but the image lists {self._wanted[:12]}…",
                fix="copy or save the image again",
            )
