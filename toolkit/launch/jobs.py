"""Submit a job, ask what became of it, cancel it; the door between records and Slurm."""

import contextlib
import posixpath
import time

import msgspec

from toolkit.errors import CheckFailed, Interrupted, Missing
from toolkit.launch import records, slurm
from toolkit.launch.slurm import JobStatus
from toolkit.model.job import FINAL_STATES, JobRecord
from toolkit.run.command import Command, Completed, Runner

EXIT_CODE = "exit-code"
"""The file of the job's folder in which the script leaves how it ended."""

_CANCEL_SECONDS = 5.0
_CANCEL_PAUSE = 0.5
"""How long, and how often, Slurm is asked whether a cancelled job has come to its end."""

_KILLED_OVER_SSH = 255


def submit(runner: Runner, record: JobRecord, script: str) -> JobRecord:
    """Write the script into the job's folder, submit it, and return the record with Slurm's number.

    From the moment that sbatch is started the record stays, unless sbatch itself says no: a job may run.

    Raises:
        CheckFailed: with sbatch's own words, if it refuses; then no record is left.
        Missing: if it is not known whether sbatch submitted the job.
        Interrupted: on Ctrl-C while sbatch ran.
    """
    path = posixpath.join(record.spec.directory, records.SCRIPT)
    try:
        # Until Slurm's number is known, nothing else is true; a process that is killed here leaves this.
        record = _saved(record, state="unknown")
        records.keep(record, records.SCRIPT, script.encode())
        runner.write(path, script.encode(), 0o755)
    except BaseException:
        records.forget(record)
        raise
    try:
        number = _sbatch(runner, record, slurm.sbatch(path, record.spec.directory))
        return _saved(record, id=number, state="pending")
    except KeyboardInterrupt:
        raise Interrupted(
            "interrupted while sbatch ran; the job may have been submitted", fix=_look(record)
        ) from None


def refresh(runner: Runner, record: JobRecord, seconds: float = 60.0) -> tuple[JobRecord, bool]:
    """Ask Slurm once what became of a job; return the record and whether Slurm answered.

    The answer is kept, and with a final one the job's output and metrics. A call takes at most ``seconds``.
    """
    if record.state in FINAL_STATES:
        return record, True
    status = query(runner, record.id, seconds)
    return conclude(runner, noted(record, status)), status.answer != "silent"


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


def noted(record: JobRecord, status: JobStatus) -> JobRecord:
    """Keep what Slurm answered; where it did not, the last that was known stays."""
    if status.answer == "silent" or (status.state, status.exit_code) == (record.state, record.exit_code):
        return record
    return _saved(record, state=status.state, exit_code=status.exit_code)


def conclude(runner: Runner, record: JobRecord) -> JobRecord:
    """Complete the record of a job that has ended, and bring its output and metrics here.

    Where Slurm has forgotten the job, the status that the script left says how it ended.
    """
    if record.state == "unknown" and (left := left_status(runner, record)) is not None:
        record = _saved(record, state="failed" if left else "completed", exit_code=left)
    if record.state in FINAL_STATES:
        for name in (records.OUTPUT, records.METRICS):
            if content := runner.read(posixpath.join(record.spec.directory, name)):
                records.keep(record, name, content)
    return record


def left_status(runner: Runner, record: JobRecord) -> int | None:
    """Return the exit status that the script left behind, ``None`` while it runs."""
    text = runner.read(posixpath.join(record.spec.directory, EXIT_CODE)).decode("ascii", "replace").strip()
    return int(text) if text.isdigit() else None


def cancel(runner: Runner, record: JobRecord) -> JobRecord:
    """Ask Slurm to end a job, and wait a moment for the end; the record says whether it came."""
    if not record.id:
        raise CheckFailed(
            f"the number that Slurm gave to {record.key} is not known here",
            fix="find it with squeue --me, then: scancel NUMBER",
        )
    runner.run(slurm.scancel(record.id)).require(f"cancelling job {record.id} on {runner.place}")
    deadline = time.monotonic() + _CANCEL_SECONDS
    while True:
        record, _ = refresh(runner, record)
        if record.state in FINAL_STATES or time.monotonic() > deadline:
            return record
        time.sleep(_CANCEL_PAUSE)


def _saved(record: JobRecord, **changes: object) -> JobRecord:
    record = msgspec.structs.replace(record, **changes)
    records.save(record)
    return record


def _sbatch(runner: Runner, record: JobRecord, command: Command) -> str:
    try:
        answer = runner.run(command)
    except Missing as error:
        if isinstance(error.__cause__, FileNotFoundError | PermissionError):  # there is no sbatch to start
            records.forget(record)
            raise
        raise _in_doubt(record, runner, error.message) from error
    if answer.timed_out:
        raise _in_doubt(record, runner, f"sbatch did not answer within {command.timeout:.0f} s")
    if answer.status < 0 or answer.status == _KILLED_OVER_SSH:
        raise _in_doubt(record, runner, "sbatch was ended by a signal")
    if not answer.ok:
        records.forget(record)
        raise _refused(runner, answer)
    number = slurm.parse_sbatch(answer.text)
    if number is None:
        raise _in_doubt(record, runner, f"sbatch answered without a job number: {answer.text.strip()!r}")
    return number


def _in_doubt(record: JobRecord, runner: Runner, why: str) -> Missing:
    return Missing(f"{runner.place}: {why}; the job may have been submitted", fix=_look(record))


def _look(record: JobRecord) -> str:
    return f"before you launch again: squeue --me --name={record.spec.name}, toolkit jobs show {record.key}"


def _refused(runner: Runner, answer: Completed) -> CheckFailed:
    lines = [
        line.removeprefix("sbatch: error: ").strip() for line in answer.errors.splitlines() if line.strip()
    ]
    return CheckFailed(
        f"sbatch on {runner.place} refused the job: {lines[-1] if lines else 'without a word'}",
        fix="change the option that it names; --dry-run shows the script",
        detail=answer.errors.strip().splitlines()[-5:],
    )
