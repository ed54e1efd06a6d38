"""Find a sweep, copy the output of its tasks to this machine, and return its table of results."""

from toolkit.errors import BadInput, ToolkitError
from toolkit.job.running.reach import connect_to_job
from toolkit.launch.request import sweep_values
from toolkit.launch.tracking import arrays, jobs, records
from toolkit.model.job import FINAL_STATES, JobRecord, JobTask
from toolkit.model.progress import Tell
from toolkit.run.local import LocalRunner
from toolkit.study.figures import best
from toolkit.study.tasks import SweepResult, TaskResult, figures_of

_MOST = 4 << 20
"""The largest number of bytes that toolkit reads from the beginning of a task's output."""


def find_sweep(job: str | None) -> JobRecord | None:
    """Return the record of a job if the job exists and is a sweep, else ``None``."""
    try:
        record = records.find(job, newest=True)
    except BadInput:
        return None
    return record if record.spec.sweep else None


def fetch_results(record: JobRecord, tell: Tell) -> JobRecord:
    """Return the record of a sweep with its current state, and copy the output of its tasks to this machine.

    toolkit does not contact the host of an ended sweep, because it copied the output when the sweep ended.

    Args:
        record: the record of the sweep.
        tell: a function that receives a notice if the host is unreachable and toolkit uses older output.
    """
    if record.state in FINAL_STATES:
        return record
    try:
        with connect_to_job(record) as runner:
            record, _ = jobs.refresh(runner, record)
            if record.state not in FINAL_STATES:
                jobs.copy_tasks(runner, record)
    except ToolkitError as error:
        tell.notice(f"warning: {error.message}; toolkit uses the output that it copied before")
    return record


def read_result(record: JobRecord) -> SweepResult:
    """Return the table of a sweep's results, from the tasks' output and metrics on this machine."""
    known = {task.index: task for task in record.tasks}
    local_folder, runner = records.folder(record.key), LocalRunner()
    tasks, mine = [], arrays.indexes(record.spec.array)
    for index, row in enumerate(sweep_values.rows(record.spec.sweep)):
        if index not in mine:
            continue
        task, folder = known.get(index, JobTask(index=index, state="pending")), local_folder / str(index)
        output = runner.read(str(folder / records.OUTPUT), limit=_MOST).decode("utf-8", "replace")
        figures = figures_of(folder, output)
        tasks.append(
            TaskResult(index=index, values=row, state=task.state, exit_code=task.exit_code, figures=figures)
        )
    ended = {task.index: task.figures for task in tasks if task.state == "completed"}
    return SweepResult(job=record.key, state=record.state, tasks=tuple(tasks), best=best(ended))
