"""Collect the results of a sweep, which is a job with one task for each combination of option values. The
result of a task contains the option values, the state and the last metrics.
"""

from pathlib import Path

import msgspec

from toolkit.errors import ToolkitError
from toolkit.files import is_there
from toolkit.model.job import JobState
from toolkit.study.figures import figures
from toolkit.study.result import METRICS, read_training


class TaskResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one task of a sweep: its number, option values, state, exit code and last metrics."""

    index: int
    values: dict[str, str]
    state: JobState
    exit_code: int | None = None
    figures: dict[str, float | None]
    """Metric → its last value in the task. In JSON, NaN and infinity are null."""


class SweepResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a sweep. ``best`` maps each metric to the number of the task with the best value.

    The best value is the smallest loss, error or perplexity, and the largest value of any other metric.
    """

    schema: str = "toolkit.sweep/1"
    job: str
    state: JobState
    tasks: tuple[TaskResult, ...]
    best: dict[str, int]


def figures_of(folder: Path, output: str) -> dict[str, float | None]:
    """Return the last value of each metric of a task, from the metrics file in the task's ``folder``. If the
    folder has no readable metrics file, read the values from the task's ``output``.
    """
    return _metrics(folder) or {**figures(output)}


def _metrics(folder: Path) -> dict[str, float | None]:
    if not is_there(folder / METRICS):
        return {}
    try:
        last = read_training(folder).epochs[-1]
    except ToolkitError:
        return {}
    figures = {
        "loss": last.loss,
        "accuracy": last.accuracy,
        "test_loss": last.test_loss,
        "test_accuracy": last.test_accuracy,
        "images/s": last.images_per_second,
    }
    return {name: value for name, value in figures.items() if value is not None}
