"""Find and stop the process of a job that runs on this machine without Slurm."""

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
"""The file in the job's folder with the job script's process ID and start time, and the machine's boot ID."""

_PROC = Path("/proc")
_BOOT = Path("sys/kernel/random/boot_id")
_GROUP, _STARTED = 2, 19
"""The indexes of the process group and of the start time in the list that :func:`_fields` returns. In
proc_pid_stat(5), these fields have the numbers 5 and 22."""
_ENDED = {"Z", "X"}
"""The states of a zombie process and of a dead process in proc_pid_stat(5)."""

_GRACE = 5.0
"""The time in seconds for which toolkit waits after SIGTERM, and again after SIGKILL, until a job's processes
have ended."""
_PAUSE = 0.05


class _ScriptProcess(NamedTuple):
    """The process ID that the job script recorded, with the start time of the process and the boot ID.

    Linux reuses process IDs. Together with the start time and the boot ID, a process ID is unique.
    """

    number: int
    start_time: str
    boot: str


def process_of(record: JobRecord, proc: Path = _PROC) -> int | None:
    """Return the process ID of a running local job, or ``None`` if the job has ended.

    The result is also ``None`` if the script did not record its process ID.
    """
    process = _script_process(record)
    return process.number if process and _lives(process, proc) else None


def is_lost(record: JobRecord, proc: Path = _PROC) -> bool:
    """Return whether the process of a local job no longer runs on this machine.

    If a job has no process and no exit status, the job stopped early, for example in a power failure.
    The result is False if the job ran on another machine, or if the script did not record its process ID.
    """
    process = _script_process(record)
    return record.nodes == socket.gethostname() and process is not None and not _lives(process, proc)


def group_of(record: JobRecord) -> int:
    """Return the ID of the process group that contains only the processes of a local job.

    Raises:
        CheckFailed: if the job runs on another machine, if its process group also contains other programs, or
            if toolkit does not find its process.
    """
    if record.nodes != socket.gethostname():
        raise CheckFailed(
            f"{record.key} runs without Slurm on {record.nodes}; this machine is {socket.gethostname()}",
            fix=f"run this command on {record.nodes}: `toolkit jobs cancel {record.key}`",
        )
    number = process_of(record)
    if number is None:
        raise CheckFailed(
            f"{record.key}: the job's process was not found on this machine",
            fix="press Ctrl-C in the terminal in which `toolkit launch` runs; Ctrl-C stops all ranks",
        )
    try:
        group = os.getpgid(number)
    except ProcessLookupError as error:
        raise CheckFailed(f"{record.key}: process {number} of the job has just ended") from error
    if group != number:
        raise CheckFailed(
            f"{record.key}: toolkit cannot stop only the job, because the job script (process {number}) is "
            "in the process group of the program that started the script",
            fix="stop the program that started the job, for example with Ctrl-C in its terminal",
        )
    return number


def end(group: int) -> bool:
    """Stop all processes of a process group, and return whether all processes have ended.

    toolkit sends SIGTERM, and sends SIGKILL if processes still run after five seconds.
    """
    for sign in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, sign)
        if _wait_for_end(group):
            return True
    return False


def _wait_for_end(group: int) -> bool:
    deadline = time.monotonic() + _GRACE
    while time.monotonic() < deadline:
        # A zombie process has ended, but stays in the process table of a container without an init process.
        # killpg succeeds even if only zombie processes remain, so read the state of each process from /proc.
        if not any(_member(file, group) for file in _PROC.glob("[0-9]*/stat")):
            return True
        time.sleep(_PAUSE)
    return False


def _member(stat: Path, group: int) -> bool:
    fields = _fields(stat)
    return bool(fields) and fields[_GROUP] == str(group) and fields[0] not in _ENDED


def _script_process(record: JobRecord) -> _ScriptProcess | None:
    try:
        number, started, boot = Path(posixpath.join(record.spec.directory, FILE)).read_text().split()
        return _ScriptProcess(int(number), started, boot)
    except (OSError, ValueError):
        return None


def _lives(process: _ScriptProcess, proc: Path) -> bool:
    fields = _fields(proc / str(process.number) / "stat")
    if not fields or fields[0] in _ENDED:
        return False
    return (fields[_STARTED], (proc / _BOOT).read_text().strip()) == (process.start_time, process.boot)


def _fields(stat: Path) -> list[str]:
    """Return the fields of a ``/proc/PID/stat`` file after the program's name; empty if the file is missing.

    The program's name may contain blanks and parentheses, so the fields start after the last ``)``.
    """
    try:
        return stat.read_text().rpartition(")")[2].split()
    except OSError:
        return []
