"""Run a job on this machine without Slurm, to its end; the door between records and bash."""

import datetime as dt
import posixpath
import socket
from pathlib import Path
from typing import TextIO

import msgspec

from toolkit.errors import Interrupted
from toolkit.launch import jobs, records
from toolkit.model.job import JobRecord, JobState
from toolkit.run.command import Command, OnLine, Runner


def run_local(runner: Runner, record: JobRecord, script: str, on_line: OnLine) -> JobRecord:
    """Run a script of :mod:`toolkit.launch.localscript` in the job's folder; return the final record.

    ``runner`` is this machine's. The output goes to the job's own file (``output.log``), to the record, and
    line by line to ``on_line``. The record has no number of Slurm.

    Raises:
        Interrupted: on Ctrl-C, after all ranks were ended.
        Missing: if there is no bash here.
    """
    directory = record.spec.directory
    path = posixpath.join(directory, records.SCRIPT)
    runner.write(path, script.encode(), 0o755)
    records.keep(record, records.SCRIPT, script.encode())
    record = _saved(record, id="", state="running", nodes=socket.gethostname(), started=_now())
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
        record = _saved(record, state=state, exit_code=code, ended=_now())
        record = jobs.conclude(runner, record)
    return record


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
