"""Model of a shared file server; ``slowfs`` uses it for real programs, ``replay`` for simulated clients."""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

METADATA = "m"
READ = "r"


@dataclass(frozen=True, slots=True)
class Server:
    """A file server: its ``threads`` answer metadata operations, and all clients share its ``bandwidth``."""

    metadata_seconds: float = 0.001
    threads: int = 16
    bandwidth: float = 1e9
    """Bandwidth in bytes per second."""


class Queue:
    """Computes when the server finishes each operation; operations must be added in the order in which they
    arrive.
    """

    def __init__(self, server: Server, state: Sequence[float] = ()) -> None:
        self._server = server
        *self._threads, self._wire = state or [0.0] * (server.threads + 1)

    @property
    def state(self) -> list[float]:
        """The times at which each thread and the network become free; a new queue can start from this
        state.
        """
        return [*self._threads, self._wire]

    def finish(self, kind: str, size: int, now: float) -> float:
        if kind == METADATA:
            end = max(now, self._threads[0]) + self._server.metadata_seconds
            heapq.heapreplace(self._threads, end)
            return end
        self._wire = max(now, self._wire) + size / self._server.bandwidth
        return self._wire
