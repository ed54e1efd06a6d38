"""The table of a sweep: values, state and last figures of each task; pure."""

from pathlib import Path

import msgspec

from toolkit.errors import ToolkitError
from toolkit.files import is_there
from toolkit.model.job import JobState
from toolkit.study.figures import figures
from toolkit.study.result import METRICS, read_training


class TaskResult(msgspec.Struct, frozen=True, kw_only=True):
    """One task of a sweep: its number, its values, how it ended, and the last value of each figure."""

    index: int
    values: dict[str, str]
    state: JobState
    exit_code: int | None = None
    figures: dict[str, float | None]
    """A figure that is not a number is null in JSON."""


class SweepResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a sweep; ``best`` has the number of the task with the best value of each figure.

    The smallest loss or error is the best, and the largest value of any other figure.
    """

    schema: str = "toolkit.sweep/1"
    job: str
    state: JobState
    tasks: tuple[TaskResult, ...]
    best: dict[str, int]


def figures_of(folder: Path, output: str) -> dict[str, float | None]:
    """Return the last figures of a task, from a trainer's metrics in its folder or else from its output."""
    return _metrics(folder) or {**figures(output)}


def _metrics(folder: Path) -> dict[str, float | None]:
    if not is_there(folder / METRICS):
        return {}
    try:
        last = read_training(folder).epochs[-1]
    except ToolkitError:
        return {}
    found = {
        "loss": last.loss,
        "accuracy": last.accuracy,
        "test_loss": last.test_loss,
        "test_accuracy": last.test_accuracy,
        "images/s": last.images_per_second,
    }
    return {name: value for name, value in found.items() if value is not None}
