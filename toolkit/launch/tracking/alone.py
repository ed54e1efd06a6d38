"""Run a job on this machine without Slurm, to its end; the door between records and bash."""

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
    """Run a script of :mod:`..jobscript.localscript` in the folder of the job; return the final record.

    ``runner`` is this machine's. The output goes to the job's own file (``output.log``), to the record, and
    line by line to ``on_line``. The record has no number of Slurm.

    Raises:
        Interrupted: on Ctrl-C, after all ranks were ended.
        Missing: if there is no bash here.
    """
    records.require_check(record)
    directory = record.spec.directory
    path = posixpath.join(directory, records.SCRIPT)
    # Its variables may hold what is nobody else's to read; the folder that is made for it is as private.
    runner.write(path, script.encode(), 0o700)
    records.keep(record, records.SCRIPT, script.encode())
    hand_over(runner, record.spec, secrets)
    began = {"nodes": socket.gethostname(), "started": _now(), "ended": "", "exit_code": None}
    record = _saved(record, id="", state="running", **began)
    state: JobState = "failed"
    code: int | None = None
    try:
        output = Path(jobs.output_of(record))
        output.parent.mkdir(parents=True, exist_ok=True)
        with output.open("a", encoding="utf-8") as log:
            done = runner.stream(Command(("bash", path), cwd=directory), _heard(log, on_line))
        # A shell that a signal ended is told of as a shell would.
        code = done.status if done.status >= 0 else 128 - done.status
        state = "completed" if code == 0 else "failed"
    except KeyboardInterrupt:
        state = "cancelled"
        raise Interrupted(
            f"interrupted; all ranks of {record.key} were ended",
            fix=f"what it wrote: toolkit jobs logs {record.key}",
        ) from None
    finally:
        if records.find(record.key).state == "cancelled":  # by somebody else, who ended its processes
            state = "cancelled"
        record = _saved(record, state=state, exit_code=code, ended=_now())
        record = jobs.conclude(runner, record)
    return record


def go_on(
    runner: Runner, record: JobRecord, on_line: OnLine, secrets: Mapping[str, Hidden] = NO_SECRETS
) -> JobRecord:
    """Run the script of a job that has ended once more, in its folder: trainers go on from a checkpoint.

    Raises:
        CheckFailed: if the job still runs, or was of another machine.
        Interrupted: on Ctrl-C, after all ranks were ended.
        Missing: if its script is not there any more.
    """
    if record.nodes != socket.gethostname():
        raise CheckFailed(
            f"{record.key} ran without Slurm on {record.nodes}, and this is {socket.gethostname()}",
            fix=f"there: toolkit jobs resume {record.key}",
        )
    if record.state not in FINAL_STATES or process.running(record):
        raise CheckFailed(
            f"{record.key} runs; it has to end before it can go on", fix=f"toolkit jobs cancel {record.key}"
        )
    path = posixpath.join(record.spec.directory, records.SCRIPT)
    script = runner.read(path).decode()
    if not script:
        raise Missing(f"{path} is not there any more", fix="toolkit launch --local once more")
    record = msgspec.structs.replace(record, restarts=record.restarts + 1)
    return run_local(runner, record, script, on_line, secrets)


def _heard(log: TextIO, on_line: OnLine) -> OnLine:
    """Return what writes each line to the log and hands it on."""

    def heard(line: str) -> None:
        log.write(f"{line}\n")
        log.flush()
        on_line(line)

    return heard


def _now() -> str:
    return dt.datetime.now().astimezone().replace(tzinfo=None).isoformat(timespec="seconds")


def _saved(record: JobRecord, **changes: object) -> JobRecord:
    record = msgspec.structs.replace(record, **changes)
    records.save(record)
    return record
