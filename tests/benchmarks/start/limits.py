"""The limits of a shared file server, which its real clients and the replay of many clients obey alike."""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

METADATA = "m"
READ = "r"


@dataclass(frozen=True, slots=True)
class Server:
    """A file server: ``threads`` answer operations on names, and all clients share ``bandwidth``."""

    metadata_seconds: float = 0.001
    threads: int = 16
    bandwidth: float = 1e9
    """Bytes a second."""


class Queue:
    """When the server finishes an operation; operations come in the order of their times."""

    def __init__(self, server: Server, state: Sequence[float] = ()) -> None:
        self._server = server
        *self._threads, self._wire = state or [0.0] * (server.threads + 1)

    @property
    def state(self) -> list[float]:
        """The times at which each thread and the network become free; a copy of the queue can resume from
        here."""
        return [*self._threads, self._wire]

    def finish(self, kind: str, size: int, now: float) -> float:
        """Return when an operation that comes ``now`` is done."""
        if kind == METADATA:
            end = max(now, self._threads[0]) + self._server.metadata_seconds
            heapq.heapreplace(self._threads, end)
            return end
        self._wire = max(now, self._wire) + size / self._server.bandwidth
        return self._wire
