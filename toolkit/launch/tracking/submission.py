"""Submit a job, or submit the script of an ended job again.

For each submission, toolkit runs sbatch only once, even if sbatch does not answer.
"""

import contextlib
import posixpath
import time
from collections.abc import Mapping
from itertools import takewhile

import msgspec

from toolkit.errors import BadInput, CheckFailed, Interrupted, Missing
from toolkit.launch.request import variables
from toolkit.launch.tracking import records, slurm, successors
from toolkit.model.hidden import NO_SECRETS, Hidden
from toolkit.model.job import FINAL_STATES, JobRecord, JobSpec
from toolkit.run.command import Command, Completed, Runner
from toolkit.run.patience import PatientRunner

_AWAY_SECONDS = 60.0
"""The time in seconds for which toolkit retries a broken connection while it writes the script or looks for
the job."""

_LOOK_PAUSES = (0.5, 2.0)
"""The pauses, in seconds, before the first and the second search for the job if sbatch did not answer."""

_BY_SIGNAL = 128
"""The smallest exit status with which a shell or SSH may report that a signal killed sbatch. If sbatch
refuses a job, the exit status of sbatch is 1."""


def require_slurm(script: str) -> None:
    """Raise an error if a job script is for PBS: sbatch would run the script with Slurm's default limits.

    Raises:
        BadInput: if the script is for PBS.
    """
    head = takewhile(lambda line: not line or line.startswith("#"), script.split("\n"))
    if any(line.startswith("#PBS ") for line in head):
        raise BadInput(
            "the job script is for PBS; toolkit submits only Slurm jobs",
            fix="write the script with `--dry-run > job.sh`, and submit it with `qsub job.sh`",
        )


def submit(
    runner: Runner, record: JobRecord, script: str, secrets: Mapping[str, Hidden] = NO_SECRETS
) -> JobRecord:
    """Write the script to the job's folder, submit the script, and return the record with its Slurm number.

    ``secrets`` are variables that toolkit writes to a file that only the user can read. After sbatch has
    started, a job may exist, so toolkit deletes the record only if sbatch refuses the job.

    Raises:
        BadInput: if the script is for PBS.
        CheckFailed: if sbatch refuses the job, with sbatch's message; or if the record has no result of a
            signature check of the image.
        Missing: if the host has no sbatch, or toolkit does not know whether sbatch submitted the job.
        Interrupted: on Ctrl-C while sbatch runs.
    """
    require_slurm(script)
    records.require_check(record)
    path = posixpath.join(record.spec.directory, records.SCRIPT)
    try:
        # Save the state ``unknown`` first, because a signal may kill this process before sbatch ends.
        record = msgspec.structs.replace(record, state="unknown")
        records.save(record)
        records.keep(record, records.SCRIPT, script.encode())
        # After a lost connection, toolkit writes the script again, but never runs sbatch twice.
        # Only the user may read the script, because the script may contain private variables.
        patient = PatientRunner(runner, lambda _: None, _AWAY_SECONDS)
        patient.write(path, script.encode(), 0o700)
        hand_over(patient, record.spec, secrets)
    except BaseException:
        records.forget(record)
        raise
    try:
        number = _sbatch(runner, record, slurm.sbatch(path, record.spec.directory))
        return records.update(record, id=number, numbers=(number,), state="pending")
    except KeyboardInterrupt:
        raise Interrupted(
            "interrupted while sbatch ran; the job may have been submitted", fix=_look(record)
        ) from None


def hand_over(runner: Runner, spec: JobSpec, secrets: Mapping[str, Hidden]) -> None:
    """Write the secret variables to the file in the job's folder that the job script reads.

    toolkit sends the values over SFTP or standard input, because other users can see command-line arguments.
    """
    if secrets:
        path = posixpath.join(spec.directory, variables.SECRETS)
        runner.write(path, variables.secrets_of(secrets), 0o600)


def resubmit(
    runner: Runner,
    record: JobRecord,
    secrets: Mapping[str, Hidden] = NO_SECRETS,
    options: tuple[str, ...] = (),
) -> JobRecord:
    """Submit the script of an ended job again in its folder; trainers resume from a checkpoint.

    The record gets the new Slurm number. ``options`` are sbatch options that override the script.

    Raises:
        CheckFailed: if the job still waits or runs, or sbatch refuses the job.
        Missing: if the script no longer exists, if Slurm does not say whether another job already resumes
            this job, or if toolkit does not know whether sbatch submitted the job.
        Interrupted: on Ctrl-C while sbatch runs.
    """
    if record.state not in FINAL_STATES:
        raise CheckFailed(
            f"job {record.id or record.key} has the state {record.state}; "
            "only a job that has ended can be resumed",
            fix=f"wait for the job: `toolkit jobs wait {record.key}`; or cancel the job: "
            f"`toolkit jobs cancel {record.key}`",
        )
    records.require_check(record)
    path = posixpath.join(record.spec.directory, records.SCRIPT)
    if not runner.read(path):
        raise Missing(
            f"{runner.place}: the job script {path} no longer exists",
            fix=f"launch the job again: `toolkit launch --from-job {record.key}`",
        )
    if later := _active_successors(runner, record):  # another job continues this job
        return successors.continue_under(record, later)
    # Override the begin time in the script, because the user wants to resume the job now.
    now = ("--begin=now",) if record.spec.begin else ()
    hand_over(runner, record.spec, secrets)
    try:
        number = _sbatch(
            runner, record, slurm.sbatch(path, record.spec.directory, *now, *options), disposable=False
        )
        return successors.continue_under(record, [number])
    except KeyboardInterrupt:
        raise Interrupted(
            "interrupted while sbatch ran; the job may have been submitted",
            fix=f"run again: `toolkit jobs resume {record.key}`, which also finds a job that was already "
            "submitted",
        ) from None


def _active_successors(runner: Runner, record: JobRecord) -> list[str]:
    """Return the Slurm numbers of jobs that already resume this job.

    Raises:
        Missing: if Slurm does not answer.
    """
    try:
        return successors.active_successors(runner, record)
    except Missing as error:
        raise Missing(
            f"{runner.place}: Slurm does not answer; toolkit submitted nothing, because another job may "
            f"already resume {record.key}",
            fix=f"when `squeue --me` works again on {runner.place}, run `toolkit jobs resume {record.key}`",
            detail=error.detail or (error.message,),
        ) from error


def _sbatch(runner: Runner, record: JobRecord, command: Command, *, disposable: bool = True) -> str:
    """Run sbatch once, and return the job's number.

    If sbatch does not answer, toolkit looks for the job in the output of squeue. If ``disposable`` is true,
    toolkit deletes the record in two cases: sbatch refuses the job, or the host has no sbatch.
    """
    try:
        answer = runner.run(command)
    except Missing as error:
        if isinstance(error.__cause__, FileNotFoundError | PermissionError):  # the host has no sbatch
            if disposable:
                records.forget(record)
            raise
        return _found_or_doubt(record, runner, error.message)
    if answer.timed_out:
        return _found_or_doubt(record, runner, f"sbatch did not answer within {command.timeout:.0f} s")
    if answer.status < 0 or answer.status >= _BY_SIGNAL:
        return _found_or_doubt(record, runner, "a signal killed sbatch")
    if not answer.ok and slurm.says_unanswered(answer.errors):
        return _found_or_doubt(record, runner, _last_words(answer))
    if not answer.ok:
        if disposable:
            records.forget(record)
        raise _refusal(runner, answer)
    number = slurm.parse_sbatch(answer.text)
    if number is None:
        reason = f"sbatch printed no job number: {answer.text.strip()!r}"
        return _found_or_doubt(record, runner, reason)
    return number


def _found_or_doubt(record: JobRecord, runner: Runner, reason: str) -> str:
    asking = PatientRunner(runner, lambda _: None, _AWAY_SECONDS)
    for pause in _LOOK_PAUSES:
        time.sleep(pause)
        with contextlib.suppress(Missing):
            if numbers := successors.later(asking, record):
                return numbers[-1]
    raise _in_doubt(record, runner, reason)


def _in_doubt(record: JobRecord, runner: Runner, reason: str) -> Missing:
    return Missing(f"{runner.place}: {reason}; the job may have been submitted", fix=_look(record))


def _look(record: JobRecord) -> str:
    return (
        f"before you launch again, check whether the job exists: `squeue --me --name={record.spec.name}`, "
        f"`toolkit jobs show {record.key}`"
    )


def _last_words(answer: Completed) -> str:
    lines = [
        line.removeprefix("sbatch: error: ").strip() for line in answer.errors.splitlines() if line.strip()
    ]
    return lines[-1] if lines else "sbatch printed no reason"


def _refusal(runner: Runner, answer: Completed) -> CheckFailed:
    return CheckFailed(
        f"sbatch on {runner.place} rejected the job: {_last_words(answer)}",
        fix="change the option that sbatch names; `--dry-run` shows the script",
        detail=answer.errors.strip().splitlines()[-5:],
    )
