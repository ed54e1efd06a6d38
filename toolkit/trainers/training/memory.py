"""How much memory there is, and how much of it this process has."""

import os
from pathlib import Path

_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
_USED = (Path("/sys/fs/cgroup/memory.current"), Path("/sys/fs/cgroup/memory/memory.usage_in_bytes"))
_CACHED = (Path("/sys/fs/cgroup/memory.stat"), Path("/sys/fs/cgroup/memory/memory.stat"))


def resident() -> int:
    """Return the bytes of this process that are in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def available() -> int:
    """Return the bytes that may still be taken: of the node, and of the cgroup where one sets a limit."""
    lines = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
    node = int(lines["MemAvailable"].split()[0]) * 1024
    return min([node, *(_left(*files) for files in zip(_LIMITS, _USED, _CACHED, strict=True))])


def _left(limit: Path, used: Path, stat: Path) -> int:
    """Return what a cgroup has left; the cache of files counts as free."""
    try:
        most, now = limit.read_text().strip(), int(used.read_text())
        cached = dict(line.split() for line in stat.read_text().splitlines()).get("inactive_file", "0")
        return max(0, int(most) - now + int(cached)) if most.isdecimal() else 1 << 62
    except (OSError, ValueError):
        # There is none, or it is not that of this kernel.
        return 1 << 62
