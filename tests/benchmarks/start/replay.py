"""Replay the file operations of one real client for many simulated clients of one server."""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

from tests.benchmarks.start.limits import Queue, Server

Operation = tuple[float, float, str, int]
"""A file operation: start and end in seconds, kind, and size in bytes."""


@dataclass(frozen=True, slots=True)
class Step:
    """A client computes for ``pause`` seconds, waits for the server, and then needs ``cost`` seconds."""

    pause: float
    kind: str
    size: int
    cost: float


def steps(trace: Sequence[Operation], server: Server, begun: float) -> list[Step]:
    """Return the steps in a trace; the traced client was alone and started at the time ``begun``."""
    queue, last, found = Queue(server), begun, []
    for begin, end, kind, size in sorted(trace):
        served = queue.finish(kind, size, begin)
        cost = max(end - max(served, begin), 0.0)
        found.append(Step(max(begin - last, 0.0), kind, size, cost))
        last = max(last, end)
    return found


def replay(client: Sequence[Step], rest: float, clients: int, server: Server, cores: float = 0) -> float:
    """Return the seconds after which the last of ``clients`` clients finishes.

    Args:
        client: the steps of each client.
        rest: seconds that a client computes after its last step.
        clients: the number of clients, which start at once.
        server: the file server.
        cores: the number of cores that all clients share; 0 if each client has its own core.
    """
    queue = Queue(server)
    slow = max(1.0, clients / cores) if cores else 1.0
    events = [(client[0].pause * slow if client else rest * slow, number, 0) for number in range(clients)]
    heapq.heapify(events)
    ended = 0.0
    while events:
        now, number, at = heapq.heappop(events)
        if at == len(client):
            ended = max(ended, now)
            continue
        step = client[at]
        done = queue.finish(step.kind, step.size, now) + step.cost * slow
        after = client[at + 1].pause if at + 1 < len(client) else rest
        heapq.heappush(events, (done + after * slow, number, at + 1))
    return ended
