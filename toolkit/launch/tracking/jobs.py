"""Ask what became of a job, and cancel it; the door between records and Slurm."""

import contextlib
import posixpath
import time
from collections.abc import Callable, Sequence

from toolkit.errors import CheckFailed, Missing
from toolkit.launch.request import variables
from toolkit.launch.tracking import arrays, process, records, slurm, successors
from toolkit.launch.tracking.slurm import JobStatus
from toolkit.launch.tracking.worlds import all_alone
from toolkit.model.job import FINAL_STATES, JobRecord, JobTask
from toolkit.run.command import Command, Runner
from toolkit.run.ends import read_ends

EXIT_CODE = "exit-code"
"""The file of the job's folder in which the script leaves how it ended."""

STOPPED = 75
"""How a script ends that stopped in time, with a checkpoint written (EX_TEMPFAIL)."""

_REMOVE_SECONDS = 60.0
_CANCEL_SECONDS = 5.0
_CANCEL_PAUSE = 0.5
"""How long, and how often, Slurm is asked whether a cancelled job has come to its end."""

Seen = Callable[[JobRecord, JobStatus], None]
"""Called with a job and what Slurm said of it: more than a record keeps, as why it waits."""


def _unheard(record: JobRecord, status: JobStatus) -> None:
    """Do nothing."""


def refresh(
    runner: Runner, record: JobRecord, seconds: float = 60.0, seen: Seen = _unheard
) -> tuple[JobRecord, bool]:
    """Ask Slurm once what became of a job; return the record and whether Slurm answered.

    The answer is kept, and with a final one the job's output and metrics. A call takes at most ``seconds``.
    """
    if record.state in FINAL_STATES:
        return record, True
    try:
        record = numbered(runner, record)
    except Missing:
        # The status that a script left tells of its end, but not of one that goes on after it.
        return (record if record.spec.goes_on else conclude(runner, record)), False
    status = query(runner, record.id, seconds)
    seen(record, status)
    if may_go_on(record, status) and not says_which(runner, record):
        return record, False
    return conclude(runner, noted(record, status)), status.answer != "silent"


def may_go_on(record: JobRecord, status: JobStatus) -> bool:
    """Tell whether this end may be that of one run alone, with another number behind it."""
    ended = status.state in FINAL_STATES and status.state != "completed"
    return ended and (record.spec.goes_on or status.exit_code == STOPPED)


def says_which(runner: Runner, record: JobRecord) -> bool:
    """Tell whether Slurm says which jobs there are: an end that is written down is not asked about again."""
    try:
        successors.numbers(runner, record)
    except Missing:
        return False
    return True


def refresh_all(
    runner: Runner, there: Sequence[JobRecord], seconds: float = 60.0, seen: Seen = _unheard
) -> list[tuple[JobRecord, bool]]:
    """Do as :func:`refresh` for jobs of one place: those that go on are asked for together.

    Once Slurm does not answer, the rest is not asked for.
    """
    told: dict[str, JobStatus] = {}
    if len(numbers := [record.id for record in there if record.id]) > 1:
        with contextlib.suppress(Missing):
            answer = runner.run(slurm.some(numbers, seconds))
            told = slurm.parse_some(answer.text) if answer.ok else {}
    looked: list[tuple[JobRecord, bool]] = []
    silent = False
    for record in there:
        if status := told.get(record.id):
            seen(record, status)
            looked.append((noted(record, status), True))
        elif silent:
            looked.append((record, False))
        else:
            refreshed, answered = refresh(runner, record, seconds, seen)
            silent = not answered
            looked.append((refreshed, answered))
    return looked


def numbered(runner: Runner, record: JobRecord) -> JobRecord:
    """Find the number of a job whose submission was cut off, by its folder, which no other job has.

    Raises:
        Missing: if Slurm does not answer.
    """
    if record.id or is_local(record):
        return record
    if numbers := successors.numbers(runner, record):
        # What came after an array goes on for single tasks of it.
        number = numbers[0] if record.spec.array else numbers[-1]
        return records.update(record, id=number, numbers=tuple(numbers))
    return record


def successor(runner: Runner, record: JobRecord) -> JobRecord | None:
    """Return the record of the job that goes on where this one stopped, ``None`` if there is none.

    Tasks of an array go on each under a number of its own; the record has one of them after the other.
    Where Slurm does not answer, none is known.
    """
    if record.exit_code != STOPPED and not record.spec.goes_on:
        return None
    with contextlib.suppress(Missing):
        later = successors.going_on(runner, record)
        return successors.gone_on(record, later) if later else None
    return None


def query(runner: Runner, number: str, seconds: float = 60.0) -> JobStatus:
    """Ask the controller, then the accounting; a job without a number is one that nobody knows."""
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
    """Return the place of a waiting job and how many wait with it; ``None`` where that is not to be had."""
    with contextlib.suppress(Missing):
        answer = runner.run(slurm.waiting(partition))
        return slurm.parse_waiting(answer.text, record.id) if answer.ok else None
    return None


def noted(record: JobRecord, status: JobStatus) -> JobRecord:
    """Keep what Slurm answered; where it did not, or in a word of a later release, what was known stays."""
    if status.answer == "silent" or (status.answer, status.state) == ("told", "unknown"):
        return record
    if not record.id:  # of a job that Slurm never had, such as one of this machine alone, it knows nothing
        return record
    chained = max(len(record.numbers) - 1, 0)
    told = status.tasks or status.answer == "forgotten"
    changes: dict[str, object] = {
        "state": status.state,
        "exit_code": status.exit_code,
        "restarts": max(record.restarts, chained + (status.restarts or 0)),
        "nodes": status.nodes or record.nodes,
        # Of one that waits it is only when Slurm expects it to begin.
        "started": (status.started if status.state != "pending" else "") or record.started,
        "ended": status.ended,
        "tasks": arrays.merged(record.tasks, status.tasks) if told else record.tasks,
    }
    if all(getattr(record, name) == value for name, value in changes.items()):
        return record
    return records.update(record, **changes)


def conclude(runner: Runner, record: JobRecord) -> JobRecord:
    """Complete the record of a job that has ended, and bring its output and metrics here.

    Where Slurm has forgotten the job, the status that the script left says how it ended. One that stopped
    and had itself submitted again goes on under its new number.
    """
    if record.spec.array:
        record = _tasks_concluded(runner, record)
    open_end = record.state == "unknown" or (not record.id and record.state not in FINAL_STATES)
    if open_end and (left := left_status(runner, record)) is not None:
        record = records.update(record, state="failed" if left else "completed", exit_code=left)
    elif open_end and is_local(record) and process.lost(record):
        record = records.update(record, state="failed")
    if record.state in FINAL_STATES:
        if goes_on := successor(runner, record):
            return goes_on
        for task in record.tasks or (None,):
            _bring(runner, record, task)
        record = _judged_by_output(record)
        _remove_secrets(runner, record)
    return record


def _judged_by_output(record: JobRecord) -> JobRecord:
    """Call a job failed if each of its ranks reports a world of one, whatever its exit status."""
    alone = (
        record.state == "completed" and not record.tasks and all_alone(kept_output(record), record.spec.ranks)
    )
    return records.update(record, state="failed") if alone else record


def kept_output(record: JobRecord) -> str:
    """Return the output of a job as far as this machine has it."""
    try:
        return (records.folder(record.key) / records.OUTPUT).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _remove_secrets(runner: Runner, record: JobRecord) -> None:
    """Remove the secret values of a job that has ended; its script may have been ended before it could."""
    if record.spec.secrets:
        folders = {record.spec.directory, *(task_folder(record, task) for task in record.tasks)}
        paths = sorted(posixpath.join(folder, variables.SECRETS) for folder in folders)
        with contextlib.suppress(Missing):
            runner.run(Command(("rm", "-f", "--", *paths), timeout=_REMOVE_SECONDS))


def _bring(runner: Runner, record: JobRecord, task: JobTask | None) -> None:
    metrics = posixpath.join(task_folder(record, task), records.METRICS)
    kept = (
        (records.OUTPUT, read_ends(runner, output_of(record, task))),
        (records.METRICS, runner.read(metrics, most=records.METRICS_MOST)),
    )
    for name, content in kept:
        if content:
            records.keep(record, f"{task.index}/{name}" if task else name, content)


def _tasks_concluded(runner: Runner, record: JobRecord) -> JobRecord:
    """Complete what is known of an array by the statuses that its tasks left; an end of it is that of all."""
    known = {task.index: task for task in record.tasks}
    tasks = []
    over = record.state in {*FINAL_STATES, "unknown"}
    for index in arrays.indexes(record.spec.array):
        task = known.get(index, JobTask(index=index, state="unknown"))
        # One that failed may have gone on since, under a number that nobody asked for.
        asked = task.state == "unknown" or (over and task.state == "failed" and record.spec.goes_on)
        status = left_status(runner, record, task) if asked else None
        tasks.append(task if status is None else arrays.ended(task, status))
    whole = arrays.foremost(task.state for task in tasks) if len(tasks) < arrays.MOST else "unknown"
    state, code = record.state, record.exit_code
    if over and whole in FINAL_STATES:
        state = whole
        # A failure says more than that another one stopped in time.
        worst = [task for task in tasks if task.state == whole]
        code = min(worst, key=lambda task: task.exit_code == STOPPED).exit_code
    return records.update(record, tasks=tuple(tasks), state=state, exit_code=code)


def output_of(record: JobRecord, task: JobTask | None = None) -> str:
    """Return where the job, or one task of an array, writes, on the cluster."""
    spec = record.spec
    index = str(task.index) if task else None
    return slurm.output_path(spec.directory, spec.output, record.id, spec.name, index)


def task_folder(record: JobRecord, task: JobTask | None) -> str:
    """Return the folder of a job on the cluster; each task of an array has one of its own in it."""
    return posixpath.join(record.spec.directory, str(task.index)) if task else record.spec.directory


def left_status(runner: Runner, record: JobRecord, task: JobTask | None = None) -> int | None:
    """Return the exit status that the script left behind, ``None`` while it runs."""
    text = (
        runner.read(posixpath.join(task_folder(record, task), EXIT_CODE)).decode("ascii", "replace").strip()
    )
    return int(text) if text.isdigit() else None


def cancel(runner: Runner, record: JobRecord) -> JobRecord:
    """Ask Slurm to end a job, and wait a moment for the end; the record says whether it came.

    One of this machine alone, which Slurm does not know, is ended here.

    Raises:
        CheckFailed: if Slurm's number is not known, or the process of a job without one.
    """
    if is_local(record):
        return _ended_here(runner, record)
    if not record.id:
        raise CheckFailed(
            f"the number that Slurm gave to {record.key} is not known here",
            fix="find it with squeue --me, then: scancel NUMBER",
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
    """Return what goes on of an array: its tasks may have gone on, each under a number of its own."""
    if not record.spec.array:
        return []
    with contextlib.suppress(Missing):  # the number that is known is better than none
        return successors.numbers(runner, record, live=True)
    return []


def _ended_here(runner: Runner, record: JobRecord) -> JobRecord:
    group = process.group_of(record)
    # Said before, as whoever launched it will see it end.
    before, record = record, records.update(record, state="cancelled")
    if not process.end(group):
        records.save(before)
        return before
    return conclude(runner, records.update(record, exit_code=left_status(runner, record)))


def is_local(record: JobRecord) -> bool:
    """Tell a job of ``launch --local``, which has begun though Slurm never gave it a number."""
    return not record.id and bool(record.started) and not (record.host or record.cluster)
