"""Record when each part of a rank's start finished, for the ``start`` line in ``metrics.jsonl``."""

import os
import time
from collections.abc import Mapping
from pathlib import Path

from toolkit.trainers import BEGUN

FIRST = "first_batch"
_MARKS: dict[str, float] = {}


def mark(part: str) -> None:
    """Record that ``part``, a part of the rank's start such as the imports, has finished now. Later calls for
    the same part have no effect.
    """
    if part not in _MARKS:
        _MARKS[part] = time.time()
        if part == FIRST and (reads := read_calls(Path("/proc/self/io"))) is not None:
            _MARKS["reads"] = reads


def marks() -> dict[str, float]:
    """Return the times at which the parts of the start finished, in seconds since 1970. The entry ``reads``
    is the number of read calls until the first batch.

    Before the rank has trained its first batch, the result has no entries ``first_batch`` and ``reads``.
    """
    own = {"interpreter": BEGUN, **_MARKS}
    if (mounted := container_made(Path("/"), BEGUN)) is not None:
        own["container"] = mounted
    return {name: round(value, 3) for name, value in own.items()}


def read_calls(io: Path) -> int | None:
    """Return the number of read system calls of this process, or ``None`` if the kernel does not report the
    number.
    """
    try:
        return int(dict(line.split(": ") for line in io.read_text().splitlines())["syscr"])
    except (OSError, ValueError, KeyError):
        return None


def container_made(root: Path, python_start: float) -> float | None:
    """Return the time at which the container runtime had set up the container, in seconds since 1970, or
    ``None`` if unknown.

    Apptainer and Singularity write a container's ``/etc/passwd`` after they have mounted its image. With
    other container runtimes, ``/etc/passwd`` is older than this process, so the set-up time is unknown.

    Args:
        root: the root folder of the container.
        python_start: the time at which the Python interpreter had started, in seconds since 1970.
    """
    try:
        moment = (root / "etc" / "passwd").stat().st_ctime
        started = _process_started((root / "proc" / "self" / "stat").read_text(), root)
    except (OSError, ValueError, IndexError):
        return None
    return moment if started <= moment <= python_start else None


def _process_started(stat: str, root: Path) -> float:
    """Return the earliest time at which this process may have been created, in seconds since 1970. ``stat``
    is the text of ``/proc/self/stat``, which contains the creation time in clock ticks since the boot.
    """
    ticks = int(stat.rpartition(")")[2].split()[19])
    lines = (root / "proc" / "stat").read_text().splitlines()
    booted = next(int(line.split()[1]) for line in lines if line.startswith("btime "))
    return booted + ticks / os.sysconf("SC_CLK_TCK") - _ROUNDED


_ROUNDED = 1.0
"""The largest rounding error of a process's start time, in seconds. The error exists because the kernel
reports its boot time in whole seconds.
"""


def is_complete(times: Mapping[str, float]) -> bool:
    """Return whether the recorded times include the first batch, which is the last part of a rank's start."""
    return FIRST in times
