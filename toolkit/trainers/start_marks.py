"""When the parts of a start ended on this rank, for the line ``start`` of the metrics."""

import os
import time
from collections.abc import Mapping
from pathlib import Path

from toolkit.trainers import BEGUN

FIRST = "first_batch"
_MARKS: dict[str, float] = {}


def mark(part: str) -> None:
    """Note that a part has ended; only the first time counts."""
    if part not in _MARKS:
        _MARKS[part] = time.time()
        if part == FIRST and (reads := read_calls(Path("/proc/self/io"))) is not None:
            _MARKS["reads"] = reads


def marks() -> dict[str, float]:
    """Return when each part ended, in seconds since 1970, and the read calls until the first batch.

    Without ``first_batch`` nothing has been trained.
    """
    own = {"interpreter": BEGUN, **_MARKS}
    if (mounted := container_made(Path("/"), BEGUN)) is not None:
        own["container"] = mounted
    return {name: round(value, 3) for name, value in own.items()}


def read_calls(io: Path) -> int | None:
    """Return how often this process has read from a file, ``None`` if the kernel does not say."""
    try:
        return int(dict(line.split(": ") for line in io.read_text().splitlines())["syscr"])
    except (OSError, ValueError, KeyError):
        return None


def container_made(root: Path, begun: float) -> float | None:
    """Return when the container was complete, ``None`` if unknown.

    Apptainer and Singularity write ``/etc/passwd`` of a container after they have mounted its image. With
    other runtimes the file is older than this process.

    Args:
        root: the root folder of the container.
        begun: when the interpreter had started.
    """
    try:
        moment = (root / "etc" / "passwd").stat().st_ctime
        started = _process_started((root / "proc" / "self" / "stat").read_text(), root)
    except (OSError, ValueError, IndexError):
        return None
    return moment if started <= moment <= begun else None


def _process_started(stat: str, root: Path) -> float:
    """Return when this process was made; the kernel counts clock ticks since its own start."""
    ticks = int(stat.rpartition(")")[2].split()[19])
    lines = (root / "proc" / "stat").read_text().splitlines()
    booted = next(int(line.split()[1]) for line in lines if line.startswith("btime "))
    return booted + ticks / os.sysconf("SC_CLK_TCK") - _ROUNDED


_ROUNDED = 1.0
"""The kernel writes its own start in whole seconds."""


def is_complete(found: Mapping[str, float]) -> bool:
    """Return whether a first batch was trained."""
    return FIRST in found
