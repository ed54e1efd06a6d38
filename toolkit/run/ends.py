"""Keep the beginning and the end of output of any length; read files of a place in pieces."""

from collections import deque
from collections.abc import Iterator

from toolkit.run.command import Runner

HEAD, TAIL = 1 << 20, 7 << 20
"""Bytes of a job's output that are kept on this machine: causes are near the beginning or the end."""

PIECE = 4 << 20
"""Bytes that are read at once."""


class Ends:
    """Collects at most ``head`` bytes of the beginning of a stream and ``tail`` bytes of its end."""

    def __init__(self, head: int = HEAD, tail: int = TAIL) -> None:
        self._most, self._tail_most = head, tail
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self.skipped = 0
        """How many bytes between the beginning and the end were dropped."""

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
        """Return the whole stream, or its two ends with a line between them that names the dropped part."""
        ends = bytes(self._head), b"".join(self._tail)
        return join_ends(*ends, self.skipped) if self.skipped else b"".join(ends)


def join_ends(head: bytes, tail: bytes, skipped: int) -> bytes:
    """Return two ends of an output with a line between them that says how many bytes are left out."""
    return b"%s\n[toolkit: %d bytes are left out here]\n%s" % (head, skipped, tail)


def is_cut(size: int) -> bool:
    """Return, from its size in bytes, whether a stored output is shorter than what the job wrote."""
    return size > HEAD + TAIL


def read_ends(runner: Runner, target: str) -> bytes:
    """Return a file of the runner's place: whole if it is short, otherwise its two ends, see
    :class:`Ends`.
    """
    size = runner.size(target)
    if not is_cut(size):
        return runner.read(target, most=HEAD + TAIL)
    tail = runner.read(target, size - TAIL, TAIL)
    return join_ends(runner.read(target, 0, HEAD), tail, size - HEAD - TAIL)


def pieces(runner: Runner, target: str, offset: int = 0) -> Iterator[bytes]:
    """Yield a file of the runner's place from ``offset`` on, in pieces of bounded size."""
    while chunk := runner.read(target, offset, PIECE):
        yield chunk
        offset += len(chunk)
