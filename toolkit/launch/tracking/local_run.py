"""Run a job on this machine without Slurm, and record its result."""

import datetime as dt
import posixpath
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import TextIO

import msgspec

from toolkit.errors import CheckFailed, Interrupted, Missing
from toolkit.launch.tracking import jobs, process, records
from toolkit.launch.tracking.submission import hand_over
from toolkit.model.hidden import NO_SECRETS, Hidden
from toolkit.model.job import FINAL_STATES, JobRecord, JobState
from toolkit.run.command import Command, OnLine, Runner


def run_local(
    runner: Runner,
    record: JobRecord,
    script: str,
    on_line: OnLine,
    secrets: Mapping[str, Hidden] = NO_SECRETS,
) -> JobRecord:
    """Run a job script in the job's folder, and return the final record.

    ``script`` is the text of the script, from :mod:`..jobscript.localscript`. ``runner`` runs commands on
    this machine. toolkit writes the output to ``output.log`` in the job's folder, passes each line to
    ``on_line``, and copies the file to the record's folder. The record has no Slurm number.

    Raises:
        CheckFailed: if the record has no result of a signature check of the image.
        Interrupted: on Ctrl-C, after all ranks have stopped.
        Missing: if this machine has no bash.
    """
    records.require_check(record)
    directory = record.spec.directory
    path = posixpath.join(directory, records.SCRIPT)
    # The script may contain private variables, so only the user may read the file.
    runner.write(path, script.encode(), 0o700)
    records.keep(record, records.SCRIPT, script.encode())
    hand_over(runner, record.spec, secrets)
    began = {"nodes": socket.gethostname(), "started": _now(), "ended": "", "exit_code": None}
    record = _save_changes(record, id="", state="running", **began)
    state: JobState = "failed"
    code: int | None = None
    try:
        output = Path(jobs.output_of(record))
        output.parent.mkdir(parents=True, exist_ok=True)
        with output.open("a", encoding="utf-8") as log:
            done = runner.stream(Command(("bash", path), cwd=directory), _line_logger(log, on_line))
        # The status -N means that signal N killed bash. Record 128 + N, as a shell would.
        code = done.status if done.status >= 0 else 128 - done.status
        state = "completed" if code == 0 else "failed"
    except KeyboardInterrupt:
        state = "cancelled"
        raise Interrupted(
            f"interrupted; all ranks of {record.key} have stopped",
            fix=f"read the output: `toolkit jobs logs {record.key}`",
        ) from None
    finally:
        if records.find(record.key).state == "cancelled":  # `toolkit jobs cancel` stopped the processes
            state = "cancelled"
        record = _save_changes(record, state=state, exit_code=code, ended=_now())
        record = jobs.conclude(runner, record)
    return record


def run_again(
    runner: Runner, record: JobRecord, on_line: OnLine, secrets: Mapping[str, Hidden] = NO_SECRETS
) -> JobRecord:
    """Run the script of an ended job again in its folder; trainers resume from a checkpoint.

    Raises:
        CheckFailed: if the job still runs, or ran on another machine.
        Interrupted: on Ctrl-C, after all ranks have stopped.
        Missing: if the script no longer exists.
    """
    if record.nodes != socket.gethostname():
        raise CheckFailed(
            f"{record.key} ran without Slurm on {record.nodes}; this machine is {socket.gethostname()}",
            fix=f"run this command on {record.nodes}: `toolkit jobs resume {record.key}`",
        )
    if record.state not in FINAL_STATES or process.process_of(record):
        raise CheckFailed(
            f"{record.key} still runs; only a job that has ended can be resumed",
            fix=f"wait until the job ends, or cancel the job: `toolkit jobs cancel {record.key}`",
        )
    path = posixpath.join(record.spec.directory, records.SCRIPT)
    script = runner.read(path).decode()
    if not script:
        raise Missing(
            f"the job script {path} no longer exists", fix="start a new job: `toolkit launch --local`"
        )
    record = msgspec.structs.replace(record, restarts=record.restarts + 1)
    return run_local(runner, record, script, on_line, secrets)


def _line_logger(log: TextIO, on_line: OnLine) -> OnLine:
    """Return a function that writes a line to ``log``, and then passes the line to ``on_line``."""

    def heard(line: str) -> None:
        log.write(f"{line}\n")
        log.flush()
        on_line(line)

    return heard


def _now() -> str:
    return dt.datetime.now().astimezone().replace(tzinfo=None).isoformat(timespec="seconds")


def _save_changes(record: JobRecord, **changes: object) -> JobRecord:
    record = msgspec.structs.replace(record, **changes)
    records.save(record)
    return record
