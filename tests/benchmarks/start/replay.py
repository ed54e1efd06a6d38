"""Replay the operations of one real client for many clients at one server."""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

from tests.benchmarks.start.limits import Queue, Server

Operation = tuple[float, float, str, int]
"""An operation: start and end in seconds, kind, and bytes."""


@dataclass(frozen=True, slots=True)
class Step:
    """The client computes for ``pause`` seconds, then asks the server, and adds its own ``cost``."""

    pause: float
    kind: str
    size: int
    cost: float


def steps(trace: Sequence[Operation], server: Server, begun: float) -> list[Step]:
    """Return the steps of a client that was alone at the server; ``begun`` is when the program started."""
    queue, last, found = Queue(server), begun, []
    for begin, end, kind, size in sorted(trace):
        served = queue.finish(kind, size, begin)
        cost = max(end - max(served, begin), 0.0)
        found.append(Step(max(begin - last, 0.0), kind, size, cost))
        last = max(last, end)
    return found


def replay(client: Sequence[Step], rest: float, clients: int, server: Server, cores: float = 0) -> float:
    """Return when the last of ``clients`` has ended.

    Args:
        client: the steps of each client.
        rest: seconds that a client computes after its last step.
        clients: how many start at once.
        server: the file server.
        cores: cores that all clients share; 0 if each has its own.
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
