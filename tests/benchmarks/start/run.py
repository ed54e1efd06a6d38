"""Compare places to start Python from: python -m tests.benchmarks.start.run WORK [--picture FILE].

``WORK`` is the folder that ``tests.benchmarks.start.places`` prepared. The benchmark needs root,
``/dev/fuse``, squashfuse and libfuse 3. It writes the results to ``WORK/start.json``.
"""

import argparse
import json
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.benchmarks.start.clients import PLACES, WALK, Run, run
from tests.benchmarks.start.limits import METADATA, Server
from tests.benchmarks.start.replay import replay, steps

SERVERS = (1, 4, 16)
"""Threads of the file server: each thread finishes 1,000 metadata operations per second."""
NODES = (1, 2, 4, 8, 16, 32, 64)
REAL = (1, 2, 4)
LINK = 2.5e9
"""Bytes per second that one node sends to other nodes: TCP on a network of 25 Gbit/s."""
FANOUT = 16
"""Slurm's TreeWidth: sbcast sends a block to this many nodes, and each of them sends it to further nodes."""


def sent(size: int, nodes: int, server: Server) -> float:
    """Return the seconds that sbcast needs to read a file once and to send it to all nodes in blocks."""
    first = min(nodes, FANOUT)
    return size / server.bandwidth + (first + math.ceil((nodes - first) / first)) * size / LINK


def measure(work: Path, place: str, rounds: int, real: Sequence[int]) -> dict[str, Any]:
    """Start Python from one place on a few simulated nodes, and compute the times for many nodes.

    The computation replays the fastest of several runs in which only one node starts Python.
    """
    server = Server()
    singles = [run(place, work, 1) for _ in range(rounds)]
    best = min(singles, key=lambda one: one.seconds)
    trace = [one for one in best.trace if one[0] - best.begun <= best.seconds[0]]
    client = steps(trace, server, best.begun)
    (work / f"{place}.trace.json").write_text(json.dumps([best.begun, best.seconds[0], trace]))
    rest = max(best.seconds[0] - (max(end for _, end, _, _ in trace) - best.begun), 0.0)
    size = sum(size for _, _, _, size in trace)
    alone = {n: max(_real(place, work, n, best).seconds) for n in real}
    found: dict[str, Any] = {
        "names": sum(kind == METADATA for _, _, kind, _ in trace),
        "reads": sum(kind != METADATA for _, _, kind, _ in trace),
        "bytes": size,
        "real": alone,
        "replayed": {t: {n: replay(client, rest, n, Server(threads=t)) for n in NODES} for t in SERVERS},
        "replayed here": {n: replay(client, rest, n, server, os.cpu_count() or 1) for n in real},
    }
    if place.endswith("-copy"):
        found["sent"] = {n: sent(size, n, server) + rest for n in NODES}
    return found


def _real(place: str, work: Path, nodes: int, single: Run) -> Run:
    return single if nodes == 1 else run(place, work, nodes)


def verify(work: Path) -> dict[str, dict[int, float]]:
    """Compare measured and replayed times of the program ``walk``, by number of nodes.

    ``replayed`` has times computed from the run of a single node.
    """
    server = Server(threads=1)
    single = run(WALK, work, 1, server)
    client = steps(single.trace, server, single.begun)
    rest = max(single.seconds[0] - (max(end for _, end, _, _ in single.trace) - single.begun), 0.0)
    real = {n: max((single if n == 1 else run(WALK, work, n, server)).seconds) for n in REAL}
    return {"real": real, "replayed": {n: replay(client, rest, n, server) for n in REAL}}


def main() -> None:
    """Measure all places, and write the results."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("work", type=Path)
    options.add_argument("--rounds", type=int, default=3, help="single runs; the fastest counts")
    options.add_argument("--places", nargs="*", default=PLACES)
    options.add_argument("--real", nargs="*", default=PLACES, help="places to start on several nodes at once")
    options.add_argument("--picture", type=Path)
    asked = options.parse_args()
    run("env", asked.work, 1)  # warm-up: loads the node's operating system into the page cache
    found: dict[str, Any] = {WALK: verify(asked.work)}
    print(WALK, json.dumps(found[WALK]), flush=True)
    for place in asked.places:
        found[place] = measure(asked.work, place, asked.rounds, REAL if place in asked.real else REAL[:1])
        print(place, json.dumps(found[place]), flush=True)
    text = json.dumps(found, indent=1)
    (asked.work / "start.json").write_text(text)
    if asked.picture:
        from tests.benchmarks.start.picture import draw

        draw(json.loads(text), asked.picture)


if __name__ == "__main__":
    main()
