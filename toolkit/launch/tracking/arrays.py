"""Compute the indexes and states of a job array's tasks, and the state of the whole array."""

import re
from collections.abc import Iterable

import msgspec

from toolkit.model.job import FINAL_STATES, MOST_TASKS, JobState, JobTask

_FOREMOST: tuple[JobState, ...] = (
    "running", "pending", "unknown", "failed", "timeout", "cancelled", "completed",
)  # fmt: skip


def indexes(notation: str) -> tuple[int, ...]:
    """Return the task indexes that Slurm's ``notation`` of an array describes, at most :data:`MOST_TASKS`.

    >>> indexes("0-6:3,9%2"), indexes("[4-5]")
    ((0, 3, 6, 9), (4, 5))
    """
    task_numbers: list[int] = []
    for part in notation.strip("[]").partition("%")[0].split(","):
        if match := re.fullmatch(r"(\d+)(?:-(\d+)(?::(\d+))?)?", part):
            first = int(match[1])
            numbers = range(first, int(match[2] or first) + 1, int(match[3] or 1) or 1)
            task_numbers += numbers[: MOST_TASKS - len(task_numbers)]
    return tuple(dict.fromkeys(task_numbers))


def foremost(states: Iterable[JobState]) -> JobState:
    """Return the state of an array: the first state in :data:`_FOREMOST` that any of its tasks has."""
    return min(states, key=_FOREMOST.index, default="unknown")


def merge_tasks(earlier_tasks: Iterable[JobTask], current_tasks: Iterable[JobTask]) -> tuple[JobTask, ...]:
    """Return all tasks in ``current_tasks``, and the tasks in ``earlier_tasks`` that ``current_tasks`` lacks.

    ``earlier_tasks`` are from an earlier query of Slurm. If Slurm no longer lists a task that had not ended,
    the task's state becomes ``unknown``.
    """
    tasks = {task.index: task for task in current_tasks}
    for task in earlier_tasks:
        ended = task.state in FINAL_STATES
        tasks.setdefault(task.index, task if ended else msgspec.structs.replace(task, state="unknown"))
    return tuple(tasks[index] for index in sorted(tasks))


def with_exit_status(task: JobTask, status: int) -> JobTask:
    """Return the task with its exit status, and with the state that follows from the exit status."""
    return msgspec.structs.replace(task, state="failed" if status else "completed", exit_code=status)
