"""Format job records (what toolkit stores about its jobs) as text."""

import datetime as dt
import posixpath
import shlex
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from toolkit.launch.request import sweep_values
from toolkit.launch.tracking import records
from toolkit.launch.tracking.jobs import output_of
from toolkit.launch.tracking.state_text import clock, times
from toolkit.model.hidden import HIDDEN_TEXT
from toolkit.model.job import JobRecord, JobTask
from toolkit.report.plain import join_lines
from toolkit.report.table import table

_WIDTH = 12
_NOT_REACHED = "?  the cluster did not answer; this was the last known state"
_WIDE = 120
"""Minimum terminal width in characters at which the list of jobs also shows each job's launch mode, cluster
and time of submission.
"""
_UNKNOWN: Mapping[int, str] = {}


def job_text(record: JobRecord, progress: Mapping[int, str] = _UNKNOWN) -> str:
    """Return the record of a job as text: the job's command, launch mode, cluster and outcome.

    ``progress`` maps the index of each task in a job array to a text about the task's progress.
    """
    spec = record.spec
    script, values = (
        posixpath.join(spec.directory, records.SCRIPT),
        dict(enumerate(sweep_values.rows(spec.sweep))),
    )
    entries = [
        ("job", [record.key]),
        ("state", [_state(record)]),
        ("slurm", [f"{_numbers(record)} on {record.place}"]),
        ("size", [_size(record)]),
        ("plan", _plan(record)),
        ("image", [spec.image, record.image_digest, _signature(record)]),
        ("command", [shlex.join(spec.command)]),
        ("folder", [spec.directory]),
        ("script", [script, _copy_name(record, records.SCRIPT)]),
        ("output", [output_of(record), _copy_name(record, records.OUTPUT)]),
        ("submitted", [_local(record.submitted)]),
        ("started", [f"{clock(record.started)}, the cluster's time" if record.started else ""]),
        ("ended", [f"{clock(record.ended)}, the cluster's time" if record.ended else ""]),
        ("nodes", [record.nodes]),
        ("tasks", [_task(task, progress.get(task.index, ""), values) for task in record.tasks]),
    ]
    return join_lines(line for name, values in entries for line in _entry(name, values))


def state(record: JobRecord) -> str:
    """Return the state of a job in a few words, for example ``running, started again once``."""
    return f"{record.state}, {times(record.restarts)}" if record.restarts else record.state


def _state(record: JobRecord) -> str:
    code = f", exit code {record.exit_code}" if record.exit_code is not None else ""
    return state(record) + code


def _task(task: JobTask, progress: str, values: Mapping[int, sweep_values.Row]) -> str:
    code = f", exit code {task.exit_code}" if task.exit_code is not None else ""
    where = f" on {task.nodes}" if task.nodes else ""
    row = sweep_values.describe_values(values.get(task.index, {}))
    more = "; ".join(filter(None, (row, progress)))
    return f"{task.index}  {task.state}{code}{where}{'; ' if more else ''}{more}"


def _numbers(record: JobRecord) -> str:
    before = [number for number in record.numbers if number != record.id]
    number = record.id or "the number of the job in Slurm is unknown"
    return f"{number} (earlier: {', '.join(before)})" if before else number


def _size(record: JobRecord) -> str:
    spec = record.spec
    nodes = f"{spec.nodes} node{'s' * (spec.nodes > 1)}"
    ranks = f"{spec.ranks_per_node} rank{'s' * (spec.ranks_per_node > 1)} per node"
    size = f"{nodes}, {ranks}, time limit {spec.time}"
    where = f", partition {spec.partition}" if spec.partition else ""
    return f"{size}{where}"


def _plan(record: JobRecord) -> list[str]:
    plan = record.plan
    forced = ", forced" if record.forced else ""
    words = shlex.join((*plan.launcher, *plan.container))
    env = (f"{name}={shlex.quote(value)}" for name, value in plan.env.items())
    binds = (f"--bind {shlex.quote(bind)}" for bind in plan.binds)
    secrets = (f"{name}={HIDDEN_TEXT}" for name in record.spec.secrets)
    unset = f"{len(plan.unset)} variables of the host do not reach the container" if plan.unset else ""
    return [f"{record.mode} (predicted: {record.predicted}{forced})", words, *env, *secrets, *binds, unset]


def _signature(record: JobRecord) -> str:
    check = record.image_check
    return f"signature: {', '.join((check.signature, *check.signers))}" if check else ""


def _copy_name(record: JobRecord, name: str) -> str:
    """Return the path of this machine's copy of a job's file. Return an empty string if this machine has no
    copy.
    """
    path: Path = records.folder(record.key) / name
    return str(path) if path.is_file() else ""


def _local(time: str) -> str:
    return dt.datetime.fromisoformat(time).astimezone().isoformat(" ", "seconds")


def _entry(name: str, values: Iterable[str]) -> Iterator[str]:
    """Yield one line for each value that is not blank. The first line starts with the entry's ``name``."""
    for number, value in enumerate(filter(str.strip, values)):
        yield f"{'' if number else name:<{_WIDTH}}{value}"


def jobs_table(job_records: Iterable[tuple[JobRecord, bool]], width: int | None) -> str:
    """Return a table of jobs, the newest first. A ``?`` marks jobs whose cluster is unreachable.

    Args:
        job_records: for each job, in the order of submission, its record and whether its cluster is
            reachable.
        width: the width of the terminal in characters, or ``None`` for unlimited width. If the width is less
            than :data:`_WIDE`, the table omits the launch mode, the cluster and the submission time.
    """
    wide = width is None or width >= _WIDE
    jobs = list(reversed(list(job_records)))
    rows = [
        (
            record.key,
            record.id,
            f"{state(record)}{'' if reached else ' ?'}",
            *((record.mode,) if wide else ()),
            f"{record.spec.nodes} x {record.spec.ranks_per_node}",
            *((record.place, _moment(record.submitted)) if wide else ()),
        )
        for record, reached in jobs
    ]
    more = ("mode", "where") if wide else ()
    titles = ("job", "slurm", "state", *more[:1], "ranks", *more[1:], *(("submitted",) if wide else ()))
    notes = [] if all(reached for _, reached in jobs) else ["", _NOT_REACHED]
    return "\n".join([table(titles, rows, width), *notes])


def _moment(text: str) -> str:
    """Return a time from a job record in this machine's time zone, for example ``2026-11-26 05:00``."""
    return dt.datetime.fromisoformat(text).astimezone().strftime("%Y-%m-%d %H:%M")
