"""Run a command in a container, and measure its wall-clock and CPU time."""

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
    """Wall-clock seconds, CPU seconds of all cores together, and the machine's load at the start."""

    wall: float
    cpu: float
    load: float


def timed(client: DockerClient, box: Box, words: Sequence[str]) -> Taken:
    """Time a command in a container, without the start of the container."""
    busy = load()
    ran = run_once(client, box, ("sh", "-c", _SCRIPT, "sh", *words))
    found = [line.split()[1:] for line in ran.lines if line.startswith(_MARK)]
    if not ran.ok or not found:
        raise CheckFailed(f"{words[0]} in {box.image} failed", detail=ran.lines[-12:])
    wall, cpu = (int(number) / 1e9 for number in found[-1])
    return Taken(wall, cpu, busy)


def median(taken: Iterable[Taken]) -> Taken:
    rows = list(taken)
    return Taken(*(statistics.median(getattr(t, name) for t in rows) for name in ("wall", "cpu", "load")))


def load() -> float:
    """Return the machine's load average of the last minute."""
    return float(Path("/proc/loadavg").read_text("ascii").split()[0])
