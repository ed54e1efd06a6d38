"""Update the record of a job from Slurm's answers, and cancel jobs."""

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
"""The file of the job's folder to which the script writes its exit status."""

STOPPED_STATUS = 75
"""The exit status of a script that wrote a checkpoint and stopped before its time limit (EX_TEMPFAIL)."""

_REMOVE_SECONDS = 60.0
_CANCEL_SECONDS = 5.0
_CANCEL_PAUSE = 0.5
"""For how many seconds, and how often, toolkit asks Slurm whether a cancelled job has finished."""

OnStatus = Callable[[JobRecord, JobStatus], None]
"""Called with a job and Slurm's answer, which holds more than the record keeps, such as why the job waits."""


def _ignore(record: JobRecord, status: JobStatus) -> None:
    """Do nothing."""


def refresh(
    runner: Runner, record: JobRecord, seconds: float = 60.0, seen: OnStatus = _ignore
) -> tuple[JobRecord, bool]:
    """Ask Slurm once for the state of a job; return the record and whether Slurm answered.

    The record keeps the answer. If the job has finished, toolkit also keeps its output and metrics.
    A call takes at most ``seconds``.
    """
    if record.state in FINAL_STATES:
        return record, True
    try:
        record = find_number(runner, record)
    except Missing:
        # The exit status that a script wrote shows its end, but not whether a successor job runs.
        return (record if record.spec.may_resume else conclude(runner, record)), False
    status = query(runner, record.id, seconds)
    seen(record, status)
    if may_have_successor(record, status) and not slurm_lists_jobs(runner, record):
        return record, False
    return conclude(runner, write_status(record, status)), status.answer != "silent"


def may_have_successor(record: JobRecord, status: JobStatus) -> bool:
    """Return whether the job may have a successor: another Slurm job that resumes its work."""
    ended = status.state in FINAL_STATES and status.state != "completed"
    return ended and (record.spec.may_resume or status.exit_code == STOPPED_STATUS)


def slurm_lists_jobs(runner: Runner, record: JobRecord) -> bool:
    """Return whether Slurm lists the jobs of the record.

    toolkit never asks again about a recorded end, so it records an end only after Slurm listed the jobs.
    """
    try:
        successors.numbers(runner, record)
    except Missing:
        return False
    return True


def refresh_all(
    runner: Runner, there: Sequence[JobRecord], seconds: float = 60.0, seen: OnStatus = _ignore
) -> list[tuple[JobRecord, bool]]:
    """Refresh the records of one cluster as :func:`refresh` does.

    One query asks for all jobs that wait or run. If Slurm does not answer, the other records are unchanged.
    """
    statuses: dict[str, JobStatus] = {}
    if len(numbers := [record.id for record in there if record.id]) > 1:
        with contextlib.suppress(Missing):
            answer = runner.run(slurm.query_jobs(numbers, seconds))
            statuses = slurm.parse_some(answer.text) if answer.ok else {}
    looked: list[tuple[JobRecord, bool]] = []
    silent = False
    for record in there:
        if status := statuses.get(record.id):
            seen(record, status)
            looked.append((write_status(record, status), True))
        elif silent:
            looked.append((record, False))
        else:
            refreshed, answered = refresh(runner, record, seconds, seen)
            silent = not answered
            looked.append((refreshed, answered))
    return looked


def find_number(runner: Runner, record: JobRecord) -> JobRecord:
    """Find the number of a job whose submission was interrupted, by its folder, which no other job has.

    Raises:
        Missing: if Slurm does not answer.
    """
    if record.id or is_local(record):
        return record
    if numbers := successors.numbers(runner, record):
        # The first number is the array; each later number resumes one task of it.
        number = numbers[0] if record.spec.array else numbers[-1]
        return records.update(record, id=number, numbers=tuple(numbers))
    return record


def successor(runner: Runner, record: JobRecord) -> JobRecord | None:
    """Return the record of the job that resumes this job; ``None`` without such a job or an answer of Slurm.

    Each resumed task of an array has its own number; the record holds these numbers one after the other.
    """
    if record.exit_code != STOPPED_STATUS and not record.spec.may_resume:
        return None
    with contextlib.suppress(Missing):
        later = successors.active_successors(runner, record)
        return successors.continue_under(record, later) if later else None
    return None


def query(runner: Runner, number: str, seconds: float = 60.0) -> JobStatus:
    """Ask Slurm's controller, then its accounting. Slurm cannot know a job without a number."""
    if not number:
        return JobStatus("unknown", answer="forgotten")
    shown = runner.run(slurm.show_job(number, seconds))
    if shown.ok and (status := slurm.parse_show_job(shown.text)):
        return status
    with contextlib.suppress(Missing):  # a site without accounting need not have sacct
        answer = runner.run(slurm.account(number, seconds))
        if answer.ok and (status := slurm.parse_account(answer.text)):
            return status
    return JobStatus("unknown", answer="forgotten" if slurm.says_forgotten(shown.errors) else "silent")


def place_in_queue(runner: Runner, record: JobRecord, partition: str) -> tuple[int, int] | None:
    """Return the place of a waiting job and the number of waiting jobs; ``None`` if Slurm does not say."""
    with contextlib.suppress(Missing):
        answer = runner.run(slurm.query_waiting_jobs(partition))
        return slurm.parse_waiting(answer.text, record.id) if answer.ok else None
    return None


def write_status(record: JobRecord, status: JobStatus) -> JobRecord:
    """Write Slurm's answer into the record.

    The record is unchanged if Slurm did not answer, or answered with an unknown state.
    """
    if status.answer == "silent" or (status.answer, status.state) == ("answered", "unknown"):
        return record
    if not record.id:  # Slurm does not know this job, for example because it runs only on this machine
        return record
    chained = max(len(record.numbers) - 1, 0)
    has_tasks = status.tasks or status.answer == "forgotten"
    changes: dict[str, object] = {
        "state": status.state,
        "exit_code": status.exit_code,
        "restarts": max(record.restarts, chained + (status.restarts or 0)),
        "nodes": status.nodes or record.nodes,
        # For a job that waits, Slurm's StartTime is only the time at which it expects the job to start.
        "started": (status.started if status.state != "pending" else "") or record.started,
        "ended": status.ended,
        "tasks": arrays.merge_tasks(record.tasks, status.tasks) if has_tasks else record.tasks,
    }
    if all(getattr(record, name) == value for name, value in changes.items()):
        return record
    return records.update(record, **changes)


def conclude(runner: Runner, record: JobRecord) -> JobRecord:
    """Complete the record of a job that has ended, and copy its output and metrics to this machine.

    If Slurm has forgotten the job, the exit status that the script wrote decides. If the job stopped and
    submitted itself again, the record gets the new number.
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
        record = _judged_by_output(record)
        if record.state != "completed":
            remembered.forget()
        _remove_secrets(runner, record)
    return record


def _judged_by_output(record: JobRecord) -> JobRecord:
    """Mark a job as failed if each of its ranks reports a world of size 1, whatever its exit status."""
    alone = (
        record.state == "completed" and not record.tasks and all_alone(kept_output(record), record.spec.ranks)
    )
    return records.update(record, state="failed") if alone else record


def kept_output(record: JobRecord) -> str:
    """Return the part of a job's output that this machine has."""
    try:
        return (records.folder(record.key) / records.OUTPUT).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _remove_secrets(runner: Runner, record: JobRecord) -> None:
    """Remove the secret values of a job that has ended, because Slurm may have killed its script before."""
    if record.spec.secrets:
        folders = {record.spec.directory, *(task_folder(record, task) for task in record.tasks)}
        paths = sorted(posixpath.join(folder, variables.SECRETS) for folder in folders)
        with contextlib.suppress(Missing):
            runner.run(Command(("rm", "-f", "--", *paths), timeout=_REMOVE_SECONDS))


def copy_tasks(runner: Runner, record: JobRecord) -> None:
    """Copy output and metrics of the tasks that have begun to this machine, of an array that runs."""
    for task in record.tasks:
        if task.state != "pending":
            _copy_results(runner, record, task)


def _copy_results(runner: Runner, record: JobRecord, task: JobTask | None) -> None:
    metrics = posixpath.join(task_folder(record, task), records.METRICS)
    kept = (
        (records.OUTPUT, read_ends(runner, output_of(record, task))),
        (records.METRICS, runner.read(metrics, most=records.METRICS_MOST)),
        (records.TIMES, runner.read(posixpath.join(task_folder(record, task), records.TIMES))),
    )
    for name, content in kept:
        if content:
            records.keep(record, f"{task.index}/{name}" if task else name, content)


def _tasks_concluded(runner: Runner, record: JobRecord) -> JobRecord:
    """Add the exit statuses that the tasks of an array wrote; the array ends with its last task."""
    known = {task.index: task for task in record.tasks}
    tasks = []
    over = record.state in {*FINAL_STATES, "unknown"}
    for index in arrays.indexes(record.spec.array):
        task = known.get(index, JobTask(index=index, state="unknown"))
        # A failed task may have resumed since, under a number that toolkit did not ask for.
        asked = task.state == "unknown" or (over and task.state == "failed" and record.spec.may_resume)
        status = left_status(runner, record, task) if asked else None
        tasks.append(task if status is None else arrays.with_exit_status(task, status))
    whole = arrays.foremost(task.state for task in tasks) if len(tasks) < MOST_TASKS else "unknown"
    state, code = record.state, record.exit_code
    if over and whole in FINAL_STATES:
        state = whole
        # A failure matters more than a task that stopped before its time limit.
        worst = [task for task in tasks if task.state == whole]
        code = min(worst, key=lambda task: task.exit_code == STOPPED_STATUS).exit_code
    return records.update(record, tasks=tuple(tasks), state=state, exit_code=code)


def output_of(record: JobRecord, task: JobTask | None = None) -> str:
    """Return the path of the output of a job, or of one task of an array, on the cluster."""
    spec = record.spec
    index = str(task.index) if task else None
    return slurm.output_path(spec.directory, spec.output, record.id, spec.name, index)


def task_folder(record: JobRecord, task: JobTask | None) -> str:
    """Return the folder of a job on the cluster; each task of an array has its own folder inside."""
    return posixpath.join(record.spec.directory, str(task.index)) if task else record.spec.directory


def left_status(runner: Runner, record: JobRecord, task: JobTask | None = None) -> int | None:
    """Return the exit status that the script wrote, ``None`` while it runs."""
    text = (
        runner.read(posixpath.join(task_folder(record, task), EXIT_CODE)).decode("ascii", "replace").strip()
    )
    return int(text) if text.isdigit() else None


def size_of_output(runner: Runner, record: JobRecord) -> int | None:
    """Return how many bytes of output the script's node wrote; ``None`` if unknown."""
    if record.spec.array:
        return None
    text = runner.read(posixpath.join(record.spec.directory, records.TIMES)).decode("ascii", "replace")
    found = re.findall(r"^output (\d+)$", text, re.MULTILINE)
    return int(found[-1]) or None if found else None


def cancel(runner: Runner, record: JobRecord) -> JobRecord:
    """Ask Slurm to cancel a job, wait a few seconds, and return the record with the state after that.

    toolkit itself stops a job of ``launch --local``, which Slurm does not know.

    Raises:
        CheckFailed: if toolkit does not know the job's number in Slurm, or the process of a local job.
    """
    if is_local(record):
        return _stop_local(runner, record)
    if not record.id:
        raise CheckFailed(
            f"{record.key}: its number in Slurm is unknown",
            fix="find the number with `squeue --me`, then: `scancel NUMBER`",
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
    """Return the numbers of an array's jobs that wait or run; each resumed task has its own number."""
    if not record.spec.array:
        return []
    with contextlib.suppress(Missing):  # the caller then uses the number of the record
        return successors.numbers(runner, record, live=True)
    return []


def _stop_local(runner: Runner, record: JobRecord) -> JobRecord:
    group = process.group_of(record)
    # The record is changed first, because the process that launched the job sees it end.
    before, record = record, records.update(record, state="cancelled")
    if not process.end(group):
        records.save(before)
        return before
    return conclude(runner, records.update(record, exit_code=left_status(runner, record)))


def is_local(record: JobRecord) -> bool:
    """Return whether the job is one of ``launch --local``: it has started, and has no number in Slurm."""
    return not record.id and bool(record.started) and not (record.host or record.cluster)
