"""Read how much memory this node and its cgroups have left, and how much memory this process uses."""

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

_NO_LIMIT = 1 << 62
_CGROUPS = Path("/sys/fs/cgroup")
_V2 = ("memory.max", "memory.current", "memory.stat")
_V1 = ("memory.limit_in_bytes", "memory.usage_in_bytes", "memory.stat")
"""The names of a cgroup's memory files (``_V2`` for cgroup version 2, ``_V1`` for version 1). The
first file contains the limit, and the second file contains the memory in use. The third file contains the
memory in use by kind, such as file cache.
"""


def resident() -> int:
    """Return the resident memory of this process in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def available() -> int:
    """Return the memory in bytes that this process can still use: the free memory of the node or, if a cgroup
    of this process has less free memory, the free memory of the cgroup.
    """
    lines = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
    node = int(lines["MemAvailable"].split()[0]) * 1024
    return min(node, left_in_cgroups(Path("/proc/self/cgroup"), _CGROUPS))


def left_in_cgroups(cgroup_file: Path, root: Path) -> int:
    """Return the smallest free memory in bytes among the cgroups of this process and their parents, up to the
    folder ``root``.

    ``cgroup_file`` is the file in which the kernel lists the cgroups of this process. Slurm sets the memory
    limits of a job, step or task on these cgroups. In an Apptainer container, ``root`` is the host's cgroup
    folder, so this process finds the job's memory limits in folders below ``root``.
    """
    try:
        lines = cgroup_file.read_text().splitlines()
    except OSError:
        lines = []
    folders = {(root, _V2): None, (root / "memory", _V1): None}
    for line in lines:
        _, kinds, path = line.split(":", 2)
        if not kinds:
            # On systems with both cgroup versions, version 2 is in the folder ``unified``.
            tops = [(root, _V2), (root / "unified", _V2)]
        elif "memory" in kinds.split(","):
            tops = [(root / "memory", _V1)]
        else:
            continue
        folders |= {(folder, files): None for top, files in tops for folder in _upwards(top, path)}
    return min(_free_bytes(*(folder / name for name in files)) for folder, files in folders)


def _upwards(top: Path, path: str) -> Iterator[Path]:
    """Yield the folder of a cgroup and the folders of all its parents. ``top`` is the folder of the root
    cgroup, which is the last yielded folder.
    """
    parts = PurePosixPath(path.lstrip("/"))
    # A path with ".." leads above the container's root cgroup, so this process cannot read the folder.
    if ".." not in parts.parts:
        yield from (top / one for one in (parts, *parts.parents))


def _free_bytes(limit: Path, usage: Path, stat: Path) -> int:
    """Return the free memory of a cgroup in bytes, including the inactive file cache. Return ``_NO_LIMIT`` if
    the cgroup has no memory limit, or its memory files cannot be read.
    """
    try:
        most, now = limit.read_text().strip(), int(usage.read_text())
        told = dict(line.split() for line in stat.read_text().splitlines())
        # Prefer total_inactive_file, because inactive_file excludes child cgroups in cgroup version 1.
        cached = told.get("total_inactive_file") or told.get("inactive_file", "0")
        return max(0, int(most) - now + int(cached)) if most.isdecimal() else _NO_LIMIT
    except (OSError, ValueError):
        # This cgroup has no file with a memory limit, or the files have an unknown format.
        return _NO_LIMIT
