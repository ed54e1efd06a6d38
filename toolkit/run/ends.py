"""Shorten a long output to its beginning and its end, and read remote files in chunks."""

from collections import deque
from collections.abc import Iterator

from toolkit.run.command import Runner

HEAD, TAIL = 1 << 20, 7 << 20
"""How many bytes toolkit keeps from the beginning and from the end of a job's output."""

PIECE = 4 << 20
"""The largest number of bytes that toolkit reads at once from a remote file."""


class Ends:
    """Collects at most ``head`` bytes from the beginning of a stream and ``tail`` bytes from its end."""

    def __init__(self, head: int = HEAD, tail: int = TAIL) -> None:
        self._most, self._tail_most = head, tail
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self.skipped = 0
        """The number of dropped bytes between the kept beginning and the kept end of the stream."""

    def take(self, chunk: bytes) -> None:
        """Add the next bytes of the stream."""
        free = self._most - len(self._head)
        self._head += chunk[:free]
        rest = chunk[free:] if free > 0 else chunk
        if not rest:
            return
        self._tail.append(rest)
        self._tail_size += len(rest)
        while (over := self._tail_size - self._tail_most) > 0:
            first = self._tail.popleft()
            if len(first) > over:
                self._tail.appendleft(first[over:])
            dropped = min(len(first), over)
            self._tail_size -= dropped
            self.skipped += dropped

    def content(self) -> bytes:
        """Return the whole stream if it has at most ``head + tail`` bytes. If the stream is longer, return
        its beginning and its end. A line between them gives the number of dropped bytes.
        """
        ends = bytes(self._head), b"".join(self._tail)
        return join_ends(*ends, self.skipped) if self.skipped else b"".join(ends)


def join_ends(head: bytes, tail: bytes, gap: int) -> bytes:
    """Join the beginning and the end of a long output with a line that gives the number of omitted bytes."""
    return b"%s\n[toolkit: %d bytes are left out here]\n%s" % (head, gap, tail)


def is_cut(size: int) -> bool:
    """Return whether an output of ``size`` bytes is so long that toolkit drops its middle."""
    return size > HEAD + TAIL


def read_ends(runner: Runner, target: str) -> bytes:
    """Return the content of a file on the runner's host. If the file has more than ``HEAD + TAIL`` bytes,
    return only its beginning and its end.
    """
    size = runner.size(target)
    if not is_cut(size):
        return runner.read(target, limit=HEAD + TAIL)
    tail = runner.read(target, size - TAIL, TAIL)
    return join_ends(runner.read(target, 0, HEAD), tail, size - HEAD - TAIL)


def pieces(runner: Runner, target: str, offset: int = 0) -> Iterator[bytes]:
    """Yield a file on the runner's host from ``offset`` on, in chunks of at most :data:`PIECE` bytes."""
    while chunk := runner.read(target, offset, PIECE):
        yield chunk
        offset += len(chunk)
