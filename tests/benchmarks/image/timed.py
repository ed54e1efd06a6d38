"""Run a command in a container, and say how long it took by the clock and by the processors."""

import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec
from docker import DockerClient

from toolkit.errors import CheckFailed
from toolkit.run.docker.containers import Box, run_once

_MARK = "bench:"
_SCRIPT = f"""
used() {{
    cat /sys/fs/cgroup/cpuacct/cpuacct.usage 2> /dev/null ||
        sed -n 's/^usage_usec \\(.*\\)/\\1000/p' /sys/fs/cgroup/cpu.stat
}}
before=$(used) began=$(date +%s%N)
"$@"
status=$? ended=$(date +%s%N) after=$(used)
echo "{_MARK} $((ended - began)) $((after - before))"
exit $status
"""


class Taken(msgspec.Struct, frozen=True):
    """Seconds by the clock, and of all processors together; the load of the machine when it began."""

    wall: float
    cpu: float
    load: float


def timed(client: DockerClient, box: Box, words: Sequence[str]) -> Taken:
    """Run ``words`` in a container that has a shell; starting the container itself is not counted.

    Raises:
        CheckFailed: if the command fails.
    """
    busy = load()
    ran = run_once(client, box, ("sh", "-c", _SCRIPT, "sh", *words))
    found = [line.split()[1:] for line in ran.lines if line.startswith(_MARK)]
    if not ran.ok or not found:
        raise CheckFailed(f"{words[0]} in {box.image} failed", detail=ran.lines[-12:])
    wall, cpu = (int(number) / 1e9 for number in found[-1])
    return Taken(wall, cpu, busy)


def median(taken: Iterable[Taken]) -> Taken:
    """Return the middle of each figure."""
    rows = list(taken)
    return Taken(*(statistics.median(getattr(t, name) for t in rows) for name in ("wall", "cpu", "load")))


def load() -> float:
    """Return how many processes wanted a processor during the last minute."""
    return float(Path("/proc/loadavg").read_text("ascii").split()[0])
