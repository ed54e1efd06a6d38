"""Convert Slurm's time limits to minutes."""

NO_LIMIT = frozenset({"UNLIMITED", "INFINITE"})
"""Slurm's words for a job or partition without a time limit."""


def minutes(time: str) -> int | None:
    """Return a time limit in minutes, rounded up, or ``None`` for no limit.

    A time of zero means no limit, as does ``UNLIMITED`` (sbatch(1)).

    >>> [minutes(t) for t in ("90", "1:30", "1:00:01", "1-2", "2-0:30", "UNLIMITED", "0")]
    [90, 2, 61, 1560, 2910, None, None]
    """
    if time in NO_LIMIT:
        return None
    days, _, rest = time.rpartition("-")
    parts = [int(part) for part in rest.split(":")]
    if days:
        hours, mins, seconds = (*parts, 0, 0)[:3]
    elif len(parts) == 3:
        hours, mins, seconds = parts
    else:
        hours, (mins, seconds) = 0, (*parts, 0)[:2]
    return (int(days or 0) * 1440 + hours * 60 + mins + (1 if seconds else 0)) or None
