"""How much memory there is, and how much of it this process has."""

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

_NO_LIMIT = 1 << 62
_CGROUPS = Path("/sys/fs/cgroup")
_V2 = ("memory.max", "memory.current", "memory.stat")
_V1 = ("memory.limit_in_bytes", "memory.usage_in_bytes", "memory.stat")
"""Files of a cgroup: its limit, what it uses, and what for."""


def resident() -> int:
    """Return the bytes of this process that are in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def available() -> int:
    """Return the bytes that may still be taken: of the node, and of the cgroups where any sets a limit."""
    lines = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
    node = int(lines["MemAvailable"].split()[0]) * 1024
    return min(node, left_in_cgroups(Path("/proc/self/cgroup"), _CGROUPS))


def left_in_cgroups(own: Path, root: Path) -> int:
    """Return the least that any cgroup has left which this process is in, up to the ``root``.

    ``own`` is the file in which the kernel names them. What Slurm sets for a job, a step or a task is on this
    path; in a container that keeps the host's ``root``, as Apptainer does, none is at the root itself.
    """
    try:
        lines = own.read_text().splitlines()
    except OSError:
        lines = []
    folders = {(root, _V2): None, (root / "memory", _V1): None}
    for line in lines:
        _, kinds, path = line.split(":", 2)
        if not kinds:
            # The second is where a system has both versions.
            tops = [(root, _V2), (root / "unified", _V2)]
        elif "memory" in kinds.split(","):
            tops = [(root / "memory", _V1)]
        else:
            continue
        folders |= {(folder, files): None for top, files in tops for folder in _upwards(top, path)}
    return min(_left(*(folder / name for name in files)) for folder, files in folders)


def _upwards(top: Path, path: str) -> Iterator[Path]:
    """Return the folder of a cgroup and of all that it is in, below the top."""
    parts = PurePosixPath(path.lstrip("/"))
    # Above what a container may see there is nothing to be read.
    if ".." not in parts.parts:
        yield from (top / one for one in (parts, *parts.parents))


def _left(limit: Path, used: Path, stat: Path) -> int:
    """Return what a cgroup has left; the cache of files counts as free."""
    try:
        most, now = limit.read_text().strip(), int(used.read_text())
        told = dict(line.split() for line in stat.read_text().splitlines())
        # The first version counts those in it apart, though they are in what is used.
        cached = told.get("total_inactive_file") or told.get("inactive_file", "0")
        return max(0, int(most) - now + int(cached)) if most.isdecimal() else _NO_LIMIT
    except (OSError, ValueError):
        # There is none, or it is not that of this kernel.
        return _NO_LIMIT
