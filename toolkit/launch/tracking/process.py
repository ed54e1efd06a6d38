"""The process of a job that runs on this machine without Slurm: whether it is about, and how it is ended."""

import contextlib
import os
import posixpath
import signal
import socket
import time
from pathlib import Path
from typing import NamedTuple

from toolkit.errors import CheckFailed
from toolkit.model.job import JobRecord

FILE = "process"
"""The file of the job's folder in which its script says which process it is, while it runs."""

_PROC = Path("/proc")
_BOOT = Path("sys/kernel/random/boot_id")
_GROUP, _STARTED = 2, 19
"""Places among the fields behind the name of a program (proc_pid_stat(5), fields 5 and 22)."""
_ENDED = {"Z", "X"}

_GRACE = 5.0
"""Seconds between asking all processes of a job to end and ending them."""
_PAUSE = 0.05


class _Told(NamedTuple):
    """What the script left: numbers of processes are used again, this start time at this boot is not."""

    number: int
    started: str
    boot: str


def running(record: JobRecord, proc: Path = _PROC) -> int | None:
    """Return the number of the process that runs a job here; ``None`` if there is none, or nobody said so."""
    told = _told(record)
    return told.number if told and _lives(told, proc) else None


def lost(record: JobRecord, proc: Path = _PROC) -> bool:
    """Tell whether a job of this machine has gone without leaving a status, as when power fails."""
    told = _told(record)
    return record.nodes == socket.gethostname() and told is not None and not _lives(told, proc)


def group_of(record: JobRecord) -> int:
    """Return the group of processes that is a job of this machine, and nothing else.

    Raises:
        CheckFailed: if it runs elsewhere, was started by another program, or is not found.
    """
    if record.nodes != socket.gethostname():
        raise CheckFailed(
            f"{record.key} runs without Slurm on {record.nodes}, and this is {socket.gethostname()}",
            fix=f"there: toolkit jobs cancel {record.key}",
        )
    number = running(record)
    if number is None:
        raise CheckFailed(
            f"{record.key}: no process of this machine is known to be that job",
            fix="press Ctrl-C where it was launched: that ends all of its ranks",
        )
    try:
        group = os.getpgid(number)
    except ProcessLookupError as error:
        raise CheckFailed(f"{record.key}: its process {number} has just ended") from error
    if group != number:
        raise CheckFailed(
            f"{record.key}: its script, process {number}, shares a group with the program that started it",
            fix="end that program; or press Ctrl-C where it runs",
        )
    return number


def end(group: int) -> bool:
    """End a group of processes, asked first, and ended after five seconds; tell whether they have."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, sign)
        if _gone(group):
            return True
    return False


def _gone(group: int) -> bool:
    deadline = time.monotonic() + _GRACE
    while time.monotonic() < deadline:
        # killpg counts those too that have ended and nobody asks about, as in a container without init.
        if not any(_member(file, group) for file in _PROC.glob("[0-9]*/stat")):
            return True
        time.sleep(_PAUSE)
    return False


def _member(stat: Path, group: int) -> bool:
    fields = _fields(stat)
    return bool(fields) and fields[_GROUP] == str(group) and fields[0] not in _ENDED


def _told(record: JobRecord) -> _Told | None:
    try:
        number, started, boot = Path(posixpath.join(record.spec.directory, FILE)).read_text().split()
        return _Told(int(number), started, boot)
    except (OSError, ValueError):
        return None


def _lives(told: _Told, proc: Path) -> bool:
    fields = _fields(proc / str(told.number) / "stat")
    if not fields or fields[0] in _ENDED:
        return False
    return (fields[_STARTED], (proc / _BOOT).read_text().strip()) == (told.started, told.boot)


def _fields(stat: Path) -> list[str]:
    """Return what stands behind the name of a program, which may hold spaces and parentheses."""
    try:
        return stat.read_text().rpartition(")")[2].split()
    except OSError:
        return []
