"""Update the record of a job from Slurm's state, and cancel jobs."""

import contextlib
import posixpath
import re
import time
from collections.abc import Callable, Sequence

from toolkit.errors import CheckFailed, Missing
from toolkit.launch.request import variables
from toolkit.launch.tracking import arrays, process, records, slurm, successors
from toolkit.launch.tracking.slurm import JobStatus
from toolkit.launch.tracking.worlds import all_alone
from toolkit.model.job import FINAL_STATES, MOST_TASKS, JobRecord, JobTask
from toolkit.probe import remembered
from toolkit.run.command import Command, Runner
from toolkit.run.ends import read_ends

EXIT_CODE = "exit-code"
"""The file in the job's folder to which the job script writes its exit status."""

STOPPED_STATUS = 75
"""The exit status of a job script that stopped after a checkpoint, before its time limit (EX_TEMPFAIL)."""

_REMOVE_SECONDS = 60.0
_CANCEL_SECONDS = 5.0
_CANCEL_PAUSE = 0.5
"""The time in seconds between two queries of Slurm about a cancelled job."""

OnStatus = Callable[[JobRecord, JobStatus], None]
"""A function that receives a job and its status in Slurm.

The status has more fields than the record, such as the reason for which a job waits.
"""


def _ignore(record: JobRecord, status: JobStatus) -> None:
    """Do nothing; this is the default for ``on_status``."""


def refresh(
    runner: Runner, record: JobRecord, seconds: float = 60.0, on_status: OnStatus = _ignore
) -> tuple[JobRecord, bool]:
    """Ask Slurm once about a job; return the updated record, and whether Slurm answered.

    If the job has ended, toolkit also copies its output and metrics to this machine. The query has a timeout
    of ``seconds``.
    """
    if record.state in FINAL_STATES:
        return record, True
    try:
        record = find_number(runner, record)
    except Missing:
        # Without an answer from Slurm, only the file with the exit status can show that the job has ended.
        # Do not complete the record of a job that may have a successor: the successor may still run.
        return (record if record.spec.may_resume else conclude(runner, record)), False
    status = query(runner, record.id, seconds)
    on_status(record, status)
    if may_have_successor(record, status) and not slurm_lists_jobs(runner, record):
        return record, False
    return conclude(runner, write_status(record, status)), status.answer != "silent"


def may_have_successor(record: JobRecord, status: JobStatus) -> bool:
    """Return whether another Slurm job may resume this job's work."""
    ended = status.state in FINAL_STATES and status.state != "completed"
    return ended and (record.spec.may_resume or status.exit_code == STOPPED_STATUS)


def slurm_lists_jobs(runner: Runner, record: JobRecord) -> bool:
    """Return whether Slurm can list the jobs of the record.

    toolkit does not query Slurm again after it records the end of a job. Therefore, toolkit records the end
    of a job only after Slurm has listed the user's jobs, because the list may contain a successor.
    """
    try:
        successors.numbers(runner, record)
    except Missing:
        return False
    return True


def refresh_all(
    runner: Runner, job_records: Sequence[JobRecord], seconds: float = 60.0, on_status: OnStatus = _ignore
) -> list[tuple[JobRecord, bool]]:
    """Update the records of jobs on one cluster as :func:`refresh` does.

    One query covers all waiting and running jobs. If Slurm does not answer a query, the remaining records
    stay unchanged.
    """
    statuses: dict[str, JobStatus] = {}
    if len(numbers := [record.id for record in job_records if record.id]) > 1:
        with contextlib.suppress(Missing):
            answer = runner.run(slurm.query_jobs(numbers, seconds))
            statuses = slurm.parse_some(answer.text) if answer.ok else {}
    looked: list[tuple[JobRecord, bool]] = []
    silent = False
    for record in job_records:
        if status := statuses.get(record.id):
            on_status(record, status)
            looked.append((write_status(record, status), True))
        elif silent:
            looked.append((record, False))
        else:
            refreshed, answered = refresh(runner, record, seconds, on_status)
            silent = not answered
            looked.append((refreshed, answered))
    return looked


def find_number(runner: Runner, record: JobRecord) -> JobRecord:
    """Find the Slurm number of a job after an interrupted submission.

    toolkit finds the job by its folder, because no other job has this folder.

    Raises:
        Missing: if Slurm does not answer.
    """
    if record.id or is_local(record):
        return record
    if numbers := successors.numbers(runner, record):
        # The first job number is the array's number; each later number belongs to a resumed task.
        number = numbers[0] if record.spec.array else numbers[-1]
        return records.update(record, id=number, numbers=tuple(numbers))
    return record


def successor(runner: Runner, record: JobRecord) -> JobRecord | None:
    """Return the record of the job that resumes this job, or ``None`` if Slurm lists no such job.

    Each resumed task of an array has its own number, and the record lists all these numbers.
    """
    if record.exit_code != STOPPED_STATUS and not record.spec.may_resume:
        return None
    with contextlib.suppress(Missing):
        later = successors.active_successors(runner, record)
        return successors.continue_under(record, later) if later else None
    return None


def query(runner: Runner, number: str, seconds: float = 60.0) -> JobStatus:
    """Return the status of a job from Slurm's controller or, if this query fails, from Slurm's accounting.

    If the job number is empty, the field ``answer`` of the status is ``forgotten``.
    """
    if not number:
        return JobStatus("unknown", answer="forgotten")
    shown = runner.run(slurm.show_job(number, seconds))
    if shown.ok and (status := slurm.parse_show_job(shown.text)):
        return status
    with contextlib.suppress(Missing):  # a site without accounting may not have sacct
        answer = runner.run(slurm.account(number, seconds))
        if answer.ok and (status := slurm.parse_account(answer.text)):
            return status
    return JobStatus("unknown", answer="forgotten" if slurm.says_forgotten(shown.errors) else "silent")


def place_in_queue(runner: Runner, record: JobRecord, partition: str) -> tuple[int, int] | None:
    """Return a waiting job's place and the number of waiting jobs; ``None`` if Slurm does not answer."""
    with contextlib.suppress(Missing):
        answer = runner.run(slurm.query_waiting_jobs(partition))
        return slurm.parse_waiting(answer.text, record.id) if answer.ok else None
    return None


def write_status(record: JobRecord, status: JobStatus) -> JobRecord:
    """Write a Slurm status to the record, and return the record.

    The record stays unchanged if Slurm did not answer, or if the state is unknown.
    """
    if status.answer == "silent" or (status.answer, status.state) == ("answered", "unknown"):
        return record
    if not record.id:  # Slurm does not list this job, for example because the job runs on this machine.
        return record
    chained = max(len(record.numbers) - 1, 0)
    has_tasks = status.tasks or status.answer == "forgotten"
    changes: dict[str, object] = {
        "state": status.state,
        "exit_code": status.exit_code,
        "restarts": max(record.restarts, chained + (status.restarts or 0)),
        "nodes": status.nodes or record.nodes,
        # For a waiting job, Slurm's StartTime is only the expected start time.
        "started": (status.started if status.state != "pending" else "") or record.started,
        "ended": status.ended,
        "tasks": arrays.merge_tasks(record.tasks, status.tasks) if has_tasks else record.tasks,
    }
    if all(getattr(record, name) == value for name, value in changes.items()):
        return record
    return records.update(record, **changes)


def conclude(runner: Runner, record: JobRecord) -> JobRecord:
    """Complete the record of an ended job, and copy the job's output and metrics to this machine.

    If Slurm has forgotten the job, the exit status of the script determines the state. If the job stopped and
    resubmitted itself, the record gets the number of the new job.
    """
    if record.spec.array:
        record = _tasks_concluded(runner, record)
    open_end = record.state == "unknown" or (not record.id and record.state not in FINAL_STATES)
    if open_end and (left := left_status(runner, record)) is not None:
        record = records.update(record, state="failed" if left else "completed", exit_code=left)
    elif open_end and is_local(record) and process.is_lost(record):
        record = records.update(record, state="failed")
    if record.state in FINAL_STATES:
        if later := successor(runner, record):
            return later
        for task in record.tasks or (None,):
            _copy_results(runner, record, task)
        record = _judge_by_output(record)
        if record.state != "completed":
            remembered.forget()
        _remove_secrets(runner, record)
    return record


def _judge_by_output(record: JobRecord) -> JobRecord:
    """Mark a completed job as failed if each of its ranks reports a world of size 1."""
    alone = record.state == "completed" and not record.tasks and all_alone(kept_output(record), record)
    return records.update(record, state="failed") if alone else record


def kept_output(record: JobRecord) -> str:
    """Return the copy of a job's output on this machine, or an empty string."""
    try:
        return (records.folder(record.key) / records.OUTPUT).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _remove_secrets(runner: Runner, record: JobRecord) -> None:
    """Delete an ended job's file with secret values, which remains if Slurm kills the script too early."""
    if record.spec.secrets:
        folders = {record.spec.directory, *(task_folder(record, task) for task in record.tasks)}
        paths = sorted(posixpath.join(folder, variables.SECRETS) for folder in folders)
        with contextlib.suppress(Missing):
            runner.run(Command(("rm", "-f", "--", *paths), timeout=_REMOVE_SECONDS))


def copy_tasks(runner: Runner, record: JobRecord) -> None:
    """Copy the output and metrics of an array's started tasks to this machine."""
    for task in record.tasks:
        if task.state != "pending":
            _copy_results(runner, record, task)


def _copy_results(runner: Runner, record: JobRecord, task: JobTask | None) -> None:
    metrics = posixpath.join(task_folder(record, task), records.METRICS)
    files = (
        (records.OUTPUT, read_ends(runner, output_of(record, task))),
        (records.METRICS, runner.read(metrics, most=records.METRICS_MOST)),
        (records.TIMES, runner.read(posixpath.join(task_folder(record, task), records.TIMES))),
    )
    for name, content in files:
        if content:
            records.keep(record, f"{task.index}/{name}" if task else name, content)


def _tasks_concluded(runner: Runner, record: JobRecord) -> JobRecord:
    """Add the exit statuses that an array's tasks wrote; the array ends when its last task ends."""
    known = {task.index: task for task in record.tasks}
    tasks = []
    over = record.state in {*FINAL_STATES, "unknown"}
    for index in arrays.indexes(record.spec.array):
        task = known.get(index, JobTask(index=index, state="unknown"))
        # A failed task may have resumed as another Slurm job, about which toolkit did not ask Slurm.
        needs_status = task.state == "unknown" or (over and task.state == "failed" and record.spec.may_resume)
        status = left_status(runner, record, task) if needs_status else None
        tasks.append(task if status is None else arrays.with_exit_status(task, status))
    whole = arrays.foremost(task.state for task in tasks) if len(tasks) < MOST_TASKS else "unknown"
    state, code = record.state, record.exit_code
    if over and whole in FINAL_STATES:
        state = whole
        # A failed task's status has priority over the status of a task that stopped before its time limit.
        worst = [task for task in tasks if task.state == whole]
        code = min(worst, key=lambda task: task.exit_code == STOPPED_STATUS).exit_code
    return records.update(record, tasks=tuple(tasks), state=state, exit_code=code)


def output_of(record: JobRecord, task: JobTask | None = None) -> str:
    """Return the path of the output of a job, or of one array task, on the cluster."""
    spec = record.spec
    index = str(task.index) if task else None
    return slurm.output_path(spec.directory, spec.output, record.id, spec.name, index)


def task_folder(record: JobRecord, task: JobTask | None) -> str:
    """Return the folder of a job on the cluster; each task of an array has a subfolder."""
    return posixpath.join(record.spec.directory, str(task.index)) if task else record.spec.directory


def left_status(runner: Runner, record: JobRecord, task: JobTask | None = None) -> int | None:
    """Return the exit status that the job script wrote, or ``None`` while the script runs."""
    text = (
        runner.read(posixpath.join(task_folder(record, task), EXIT_CODE)).decode("ascii", "replace").strip()
    )
    return int(text) if text.isdigit() else None


def size_of_output(runner: Runner, record: JobRecord) -> int | None:
    """Return the size of the output in bytes, as the script's node recorded it; ``None`` if unknown."""
    if record.spec.array:
        return None
    text = runner.read(posixpath.join(record.spec.directory, records.TIMES)).decode("ascii", "replace")
    sizes = re.findall(r"^output (\d+)$", text, re.MULTILINE)
    return int(sizes[-1]) or None if sizes else None


def cancel(runner: Runner, record: JobRecord) -> JobRecord:
    """Ask Slurm to cancel a job, wait up to five seconds, and return the record with the new state.

    Slurm does not know a job of ``launch --local``, so toolkit itself stops the job's processes.

    Raises:
        CheckFailed: if toolkit does not know the job's Slurm number, or the process of a local job.
    """
    if is_local(record):
        return _stop_local(runner, record)
    if not record.id:
        raise CheckFailed(
            f"{record.key}: the number of the job in Slurm is unknown",
            fix="find the number of the job with `squeue --me`, then run `scancel NUMBER`",
        )
    numbers = _live(runner, record) or [record.id]
    runner.run(slurm.scancel(*numbers)).require(f"cancelling job {', '.join(numbers)} on {runner.place}")
    deadline = time.monotonic() + _CANCEL_SECONDS
    while True:
        record, _ = refresh(runner, record)
        if record.state in FINAL_STATES or time.monotonic() > deadline:
            return record
        time.sleep(_CANCEL_PAUSE)


def _live(runner: Runner, record: JobRecord) -> list[str]:
    """Return the numbers of an array's waiting or running jobs; each resumed task has its own number."""
    if not record.spec.array:
        return []
    with contextlib.suppress(Missing):  # the caller then uses the record's number
        return successors.numbers(runner, record, live=True)
    return []


def _stop_local(runner: Runner, record: JobRecord) -> JobRecord:
    group = process.group_of(record)
    # Record the cancellation before the job's processes stop.
    # Otherwise, the process that launched the job may record the job's end as a failure.
    before, record = record, records.update(record, state="cancelled")
    if not process.end(group):
        records.save(before)
        return before
    return conclude(runner, records.update(record, exit_code=left_status(runner, record)))


def is_local(record: JobRecord) -> bool:
    """Return whether a job is from ``launch --local``; such a job starts without a Slurm number."""
    return not record.id and bool(record.started) and not (record.host or record.cluster)
