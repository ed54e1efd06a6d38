"""The tasks of a job array: their numbers, what is known of each, and what it says of the whole; pure."""

import re
from collections.abc import Iterable

import msgspec

from toolkit.model.job import FINAL_STATES, JobState, JobTask

MOST = 500
"""Tasks that are told one by one; Slurm takes arrays of thousands (MaxArraySize)."""

_FOREMOST: tuple[JobState, ...] = (
    "running", "pending", "unknown", "failed", "timeout", "cancelled", "completed",
)  # fmt: skip


def indexes(written: str) -> tuple[int, ...]:
    """Return the numbers that Slurm's form of an array, or of some tasks of it, stands for; the first ones.

    >>> indexes("0-6:3,9%2"), indexes("[4-5]")
    ((0, 3, 6, 9), (4, 5))
    """
    found: list[int] = []
    for part in written.strip("[]").partition("%")[0].split(","):
        if match := re.fullmatch(r"(\d+)(?:-(\d+)(?::(\d+))?)?", part):
            first = int(match[1])
            numbers = range(first, int(match[2] or first) + 1, int(match[3] or 1) or 1)
            found += numbers[: MOST - len(found)]
    return tuple(dict.fromkeys(found))


def foremost(states: Iterable[JobState]) -> JobState:
    """Return the state of an array: what goes on counts first, then what failed."""
    return min(states, key=_FOREMOST.index, default="unknown")


def merged(before: Iterable[JobTask], now: Iterable[JobTask]) -> tuple[JobTask, ...]:
    """Put a new answer over an older one; how a task ended that Slurm has forgotten, nobody knows yet."""
    told = {task.index: task for task in now}
    for task in before:
        ended = task.state in FINAL_STATES
        told.setdefault(task.index, task if ended else msgspec.structs.replace(task, state="unknown"))
    return tuple(told[index] for index in sorted(told))


def ended(task: JobTask, status: int) -> JobTask:
    """Return a task that left this status."""
    return msgspec.structs.replace(task, state="failed" if status else "completed", exit_code=status)
