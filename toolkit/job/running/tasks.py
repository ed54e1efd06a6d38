"""Read the progress of a job array's tasks from their metrics."""

from collections.abc import Callable

from toolkit.job.running.reach import connect_to_job
from toolkit.launch.tracking import jobs, records
from toolkit.launch.tracking.pace import describe_pace, pace
from toolkit.model.job import FINAL_STATES, JobRecord, JobTask
from toolkit.run.command import Runner
from toolkit.run.local import LocalRunner

_WAITING = {"pending"}


def progress(record: JobRecord) -> dict[int, str]:
    """Return the progress of each array task that has written metrics, by the index of the task.

    The progress is a text such as ``epoch 3 of 12, 4,321 images/s, about 2 min left``.
    """
    if record.state in FINAL_STATES:
        folder = records.folder(record.key)
        return _read(record, LocalRunner(), lambda task: str(folder / str(task.index)))
    with connect_to_job(record) as runner:
        return _read(record, runner, lambda task: jobs.task_folder(record, task))


def _read(record: JobRecord, runner: Runner, folder: Callable[[JobTask], str]) -> dict[int, str]:
    paths = {
        task.index: f"{folder(task)}/{records.METRICS}" for task in record.tasks if task.state not in _WAITING
    }
    paces = {i: pace(runner.read(path, limit=records.METRICS_MOST)) for i, path in paths.items()}
    return {index: describe_pace(now) for index, now in paces.items() if now}
