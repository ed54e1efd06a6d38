"""Submit a job, or its script once more: once, and never twice, whatever became of the answer."""

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
from toolkit.run.patience import Patient

_AWAY_SECONDS = 60.0
"""How long a connection may be away while the script is written, or Slurm is asked whether it has the job."""

_LOOK_PAUSES = (0.5, 2.0)
"""How long after an sbatch without an answer Slurm is asked whether it has the job."""

_BY_SIGNAL = 128
"""From this status on a shell, or SSH, tells of a program that was ended; sbatch itself says 1."""


def require_slurm(script: str) -> None:
    """Refuse a script that sbatch would read without its header, on one node with the default time limit.

    Raises:
        BadInput: if the script is for PBS.
    """
    head = takewhile(lambda line: not line or line.startswith("#"), script.split("\n"))
    if any(line.startswith("#PBS ") for line in head):
        raise BadInput(
            "the job script is for PBS, and toolkit submits jobs of Slurm only",
            fix="write the script with --dry-run > job.sh, and submit it with qsub job.sh",
        )


def submit(
    runner: Runner, record: JobRecord, script: str, secrets: Mapping[str, Hidden] = NO_SECRETS
) -> JobRecord:
    """Write the script into the job's folder, submit it, and return the record with Slurm's number.

    ``secrets`` are variables that go into a file of the folder which only the user can read.

    From the moment that sbatch is started the record stays, unless sbatch itself says no: a job may run.

    Raises:
        BadInput: if the script is for another scheduler, whose header sbatch would ignore.
        CheckFailed: with sbatch's own words, if it refuses; then no record is left. Also if no gate has
            checked the image.
        Missing: if it is not known whether sbatch submitted the job.
        Interrupted: on Ctrl-C while sbatch ran.
    """
    require_slurm(script)
    records.require_check(record)
    path = posixpath.join(record.spec.directory, records.SCRIPT)
    try:
        # Until Slurm's number is known, nothing else is true; a process that is killed here leaves this.
        record = msgspec.structs.replace(record, state="unknown")
        records.save(record)
        records.keep(record, records.SCRIPT, script.encode())
        # Written twice it is the same file; sbatch below is another matter.
        # Its variables may hold what is nobody else's to read.
        patient = Patient(runner, lambda _: None, _AWAY_SECONDS)
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
    """Write secret variables into the job's folder, where its script looks for them; nothing without any.

    The content goes by SFTP or standard input, never as an argument.
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
    """Submit the script of a job that has ended once more, in its folder: trainers go on from a checkpoint.

    The record stays the same one, and gets one more number. ``options`` of sbatch win over the script.

    Raises:
        CheckFailed: if the job goes on, or sbatch refuses.
        Missing: if its script is not there any more, Slurm does not say whether it goes on already, or it is
            not known whether sbatch submitted it.
        Interrupted: on Ctrl-C while sbatch ran.
    """
    if record.state not in FINAL_STATES:
        raise CheckFailed(
            f"job {record.id or record.key} is {record.state}; it has to end before it can go on",
            fix=f"toolkit jobs wait {record.key}, or toolkit jobs cancel {record.key}",
        )
    records.require_check(record)
    path = posixpath.join(record.spec.directory, records.SCRIPT)
    if not runner.read(path):
        raise Missing(
            f"{runner.place}: {path} is not there any more", fix=f"toolkit launch --from-job {record.key}"
        )
    if later := _going_on(runner, record):  # somebody did it by hand already
        return successors.gone_on(record, later)
    # When it was to start for the first time is over.
    now = ("--begin=now",) if record.spec.begin else ()
    hand_over(runner, record.spec, secrets)
    try:
        number = _sbatch(
            runner, record, slurm.sbatch(path, record.spec.directory, *now, *options), forget=False
        )
        return successors.gone_on(record, [number])
    except KeyboardInterrupt:
        raise Interrupted(
            "interrupted while sbatch ran; the job may have been submitted",
            fix=f"toolkit jobs resume {record.key}   (it takes over the one that is there)",
        ) from None


def _going_on(runner: Runner, record: JobRecord) -> list[str]:
    """Return the numbers under which a job goes on already; without an answer nothing is submitted twice."""
    try:
        return successors.going_on(runner, record)
    except Missing as error:
        raise Missing(
            f"{runner.place}: Slurm does not say whether {record.key} goes on already; nothing was submitted",
            fix=f"once squeue --me answers there: toolkit jobs resume {record.key}",
            detail=error.detail or (error.message,),
        ) from error


def _sbatch(runner: Runner, record: JobRecord, command: Command, *, forget: bool = True) -> str:
    """Submit once, and never twice; where the answer did not come, Slurm is asked for the job.

    With ``forget`` the record of a job that never came to be is removed.
    """
    try:
        answer = runner.run(command)
    except Missing as error:
        if isinstance(error.__cause__, FileNotFoundError | PermissionError):  # there is no sbatch to start
            if forget:
                records.forget(record)
            raise
        return _found_or_doubt(record, runner, error.message)
    if answer.timed_out:
        return _found_or_doubt(record, runner, f"sbatch did not answer within {command.timeout:.0f} s")
    if answer.status < 0 or answer.status >= _BY_SIGNAL:
        return _found_or_doubt(record, runner, "sbatch was ended by a signal")
    if not answer.ok and slurm.says_unanswered(answer.errors):
        return _found_or_doubt(record, runner, _last_words(answer))
    if not answer.ok:
        if forget:
            records.forget(record)
        raise _refused(runner, answer)
    number = slurm.parse_sbatch(answer.text)
    if number is None:
        said = f"sbatch answered without a job number: {answer.text.strip()!r}"
        return _found_or_doubt(record, runner, said)
    return number


def _found_or_doubt(record: JobRecord, runner: Runner, why: str) -> str:
    asking = Patient(runner, lambda _: None, _AWAY_SECONDS)
    for pause in _LOOK_PAUSES:
        time.sleep(pause)
        with contextlib.suppress(Missing):
            if numbers := successors.later(asking, record):
                return numbers[-1]
    raise _in_doubt(record, runner, why)


def _in_doubt(record: JobRecord, runner: Runner, why: str) -> Missing:
    return Missing(f"{runner.place}: {why}; the job may have been submitted", fix=_look(record))


def _look(record: JobRecord) -> str:
    return f"before you launch again: squeue --me --name={record.spec.name}, toolkit jobs show {record.key}"


def _last_words(answer: Completed) -> str:
    lines = [
        line.removeprefix("sbatch: error: ").strip() for line in answer.errors.splitlines() if line.strip()
    ]
    return lines[-1] if lines else "without a word"


def _refused(runner: Runner, answer: Completed) -> CheckFailed:
    return CheckFailed(
        f"sbatch on {runner.place} refused the job: {_last_words(answer)}",
        fix="change the option that it names; --dry-run shows the script",
        detail=answer.errors.strip().splitlines()[-5:],
    )
