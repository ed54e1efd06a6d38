"""Update job records with the states of the jobs in Slurm, and cancel jobs."""

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
"""The exit status of a job script that stopped after a checkpoint, before its time limit (EX_TEMPFAIL of
sysexits.h)."""

_REMOVE_SECONDS = 60.0
_CANCEL_SECONDS = 5.0
_CANCEL_PAUSE = 0.5
"""The time in seconds between two queries of Slurm about a cancelled job."""

OnStatus = Callable[[JobRecord, JobStatus], None]
"""A function that receives a job and its status in Slurm.

The status contains facts that the record does not contain, such as the reason why a job waits.
"""


def _ignore(record: JobRecord, status: JobStatus) -> None:
    """Do nothing; this is the default for ``on_status``."""


def refresh(
    runner: Runner, record: JobRecord, seconds: float = 60.0, on_status: OnStatus = _ignore
) -> tuple[JobRecord, bool]:
    """Ask Slurm for the state of a job; return the updated record, and whether Slurm answered.

    If the record already has a final state, toolkit does not ask Slurm, and returns the record and True. If
    the job has just ended, toolkit also copies the job's output and metrics to this machine. ``seconds`` is
    the timeout of each query for the state.
    """
    if record.state in FINAL_STATES:
        return record, True
    try:
        record = find_number(runner, record)
    except Missing:
        # Without an answer from Slurm, only the file with the exit status can show that the job has ended.
        # If another Slurm job may resume this job, do not record the end, because that job may still run.
        return (record if record.spec.may_resume else conclude(runner, record)), False
    status = query(runner, record.id, seconds)
    on_status(record, status)
    if may_have_successor(record, status) and not slurm_lists_jobs(runner, record):
        return record, False
    return conclude(runner, write_status(record, status)), status.answer != "silent"


def may_have_successor(record: JobRecord, status: JobStatus) -> bool:
    """Return whether the job has ended without success, and another Slurm job may resume it."""
    ended = status.state in FINAL_STATES and status.state != "completed"
    return ended and (record.spec.may_resume or status.exit_code == STOPPED_STATUS)


def slurm_lists_jobs(runner: Runner, record: JobRecord) -> bool:
    """Return whether Slurm can list the user's jobs.

    The list may contain a successor: a job that resumes this job. After toolkit records the end of a job, it
    does not query Slurm again. Therefore, toolkit records the end only after Slurm has listed the jobs.
    """
    try:
        successors.numbers(runner, record)
    except Missing:
        return False
    return True


def refresh_all(
    runner: Runner, job_records: Sequence[JobRecord], seconds: float = 60.0, on_status: OnStatus = _ignore
) -> list[tuple[JobRecord, bool]]:
    """Update the records of jobs on one cluster; return each record, and whether Slurm answered.

    If at least two of the jobs have a Slurm number, one query asks for all jobs with a number. The query
    finds the jobs that wait or run. toolkit calls :func:`refresh` for each job that the query does not find.
    If Slurm does not answer during such a call, toolkit makes no more calls, and the remaining records stay
    unchanged.
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
    """Find the Slurm number of a job after an interrupted submission, and return the updated record.

    toolkit finds the job by its folder, because no other job has this folder. The record stays unchanged if
    it already has a number, if the job runs without Slurm, or if Slurm does not list the job.

    Raises:
        Missing: if Slurm does not answer.
    """
    if record.id or is_local(record):
        return record
    if numbers := successors.numbers(runner, record):
        # For an array, the first number is the array's number; each larger number belongs to a resumed task.
        number = numbers[0] if record.spec.array else numbers[-1]
        return records.update(record, id=number, numbers=tuple(numbers))
    return record


def successor(runner: Runner, record: JobRecord) -> JobRecord | None:
    """Return the record with the number of the Slurm job that resumes this job.

    For an array, the record lists the number of each resumed task. The result is ``None`` if Slurm lists no
    such job or does not answer.
    """
    if record.exit_code != STOPPED_STATUS and not record.spec.may_resume:
        return None
    with contextlib.suppress(Missing):
        later = successors.active_successors(runner, record)
        return successors.continue_under(record, later) if later else None
    return None


def query(runner: Runner, number: str, seconds: float = 60.0) -> JobStatus:
    """Return the status of a job from Slurm's controller or, if this query fails, from Slurm's accounting.

    If ``number`` is empty, toolkit does not ask Slurm, and the ``answer`` of the status is ``forgotten``.
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
    """Return a waiting job's place in the queue of ``partition``, and the number of jobs in this queue.

    The result is ``None`` if Slurm does not answer, or if the job is not in the queue, for example because
    it is held.
    """
    with contextlib.suppress(Missing):
        answer = runner.run(slurm.query_waiting_jobs(partition))
        return slurm.parse_waiting(answer.text, record.id) if answer.ok else None
    return None


def write_status(record: JobRecord, status: JobStatus) -> JobRecord:
    """Write a Slurm status to the record, and return the record.

    The record stays unchanged if Slurm did not answer, or answered with a state that toolkit does not know,
    or if the record has no Slurm number.
    """
    if status.answer == "silent" or (status.answer, status.state) == ("answered", "unknown"):
        return record
    if not record.id:  # Slurm has no status of this job, for example because the job runs without Slurm.
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

    If Slurm has forgotten the job, the exit status of the job script determines the state. If another Slurm
    job resumes this job, the record gets the number of that job. Until the job ends, the record stays
    unchanged, except for the tasks of an array.
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
    """Return a job's output from the copy on this machine, or an empty string if there is no copy."""
    try:
        return (records.folder(record.key) / records.OUTPUT).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _remove_secrets(runner: Runner, record: JobRecord) -> None:
    """Delete an ended job's file with secret values.

    The job script deletes this file, except if a signal kills the script or the job stops after a checkpoint.
    """
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
        (records.METRICS, runner.read(metrics, limit=records.METRICS_MOST)),
        (records.TIMES, runner.read(posixpath.join(task_folder(record, task), records.TIMES))),
    )
    for name, content in files:
        if content:
            records.keep(record, f"{task.index}/{name}" if task else name, content)


def _tasks_concluded(runner: Runner, record: JobRecord) -> JobRecord:
    """Update an array's record with the array's state and the exit statuses that its tasks wrote.

    The array ends when its last task ends.
    """
    known = {task.index: task for task in record.tasks}
    tasks = []
    over = record.state in {*FINAL_STATES, "unknown"}
    for index in arrays.indexes(record.spec.array):
        task = known.get(index, JobTask(index=index, state="unknown"))
        # A failed task may have resumed as another Slurm job, whose status toolkit does not query.
        needs_status = task.state == "unknown" or (over and task.state == "failed" and record.spec.may_resume)
        status = left_status(runner, record, task) if needs_status else None
        tasks.append(task if status is None else arrays.with_exit_status(task, status))
    whole = arrays.foremost(task.state for task in tasks) if len(tasks) < MOST_TASKS else "unknown"
    state, code = record.state, record.exit_code
    if over and whole in FINAL_STATES:
        state = whole
        # Prefer a status other than 75, because a task with status 75 only stopped after a checkpoint.
        worst = [task for task in tasks if task.state == whole]
        code = min(worst, key=lambda task: task.exit_code == STOPPED_STATUS).exit_code
    return records.update(record, tasks=tuple(tasks), state=state, exit_code=code)


def output_of(record: JobRecord, task: JobTask | None = None) -> str:
    """Return the path of a job's output file, or of the output file of one array task."""
    spec = record.spec
    index = str(task.index) if task else None
    return slurm.output_path(spec.directory, spec.output, record.id, spec.name, index)


def task_folder(record: JobRecord, task: JobTask | None) -> str:
    """Return the path of a job's folder, or of the subfolder of one array task."""
    return posixpath.join(record.spec.directory, str(task.index)) if task else record.spec.directory


def left_status(runner: Runner, record: JobRecord, task: JobTask | None = None) -> int | None:
    """Return the exit status that the job script wrote at its end, or ``None`` if it has not written one."""
    text = (
        runner.read(posixpath.join(task_folder(record, task), EXIT_CODE)).decode("ascii", "replace").strip()
    )
    return int(text) if text.isdigit() else None


def size_of_output(runner: Runner, record: JobRecord) -> int | None:
    """Return the size of a job's output in bytes, which the job script recorded at its end.

    The result is ``None`` for an array, or if the script recorded no size or the size 0.
    """
    if record.spec.array:
        return None
    text = runner.read(posixpath.join(record.spec.directory, records.TIMES)).decode("ascii", "replace")
    sizes = re.findall(r"^output (\d+)$", text, re.MULTILINE)
    return int(sizes[-1]) or None if sizes else None


def cancel(runner: Runner, record: JobRecord) -> JobRecord:
    """Ask Slurm to cancel a job, wait up to five seconds for its end, and return the updated record.

    Slurm does not know a job of ``launch --local``, so toolkit itself stops the job's processes.

    Raises:
        CheckFailed: if the job's Slurm number is unknown, scancel fails, or toolkit cannot stop the processes
            of a local job.
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
    """Return the Slurm numbers of the waiting or running jobs of an array.

    Each resumed task has its own number. The result is empty if the job is not an array, or if Slurm does not
    answer.
    """
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
    """Return whether a job is from ``launch --local``.

    The record of such a job has a start time, but no Slurm number, host or cluster.
    """
    return not record.id and bool(record.started) and not (record.host or record.cluster)
