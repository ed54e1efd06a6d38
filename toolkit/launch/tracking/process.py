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
"""The file in the job's folder with the process ID of the running job script."""

_PROC = Path("/proc")
_BOOT = Path("sys/kernel/random/boot_id")
_GROUP, _STARTED = 2, 19
"""The indexes of the process group and of the start time among the fields after the program's name. In
proc_pid_stat(5), these fields have the numbers 5 and 22."""
_ENDED = {"Z", "X"}

_GRACE = 5.0
"""The time in seconds that toolkit waits after SIGTERM before it sends SIGKILL to a job's processes."""
_PAUSE = 0.05


class _ScriptProcess(NamedTuple):
    """The process ID that the job script recorded, with the start time of the process and the boot ID.

    Linux reuses process IDs, but the start time and the boot ID identify the process.
    """

    number: int
    started: str
    boot: str


def process_of(record: JobRecord, proc: Path = _PROC) -> int | None:
    """Return the process ID of a running local job, or ``None`` if the job has ended.

    The result is also ``None`` if the script did not record its process ID.
    """
    process = _script_process(record)
    return process.number if process and _lives(process, proc) else None


def is_lost(record: JobRecord, proc: Path = _PROC) -> bool:
    """Return whether a local job ended without an exit status, for example in a power failure."""
    process = _script_process(record)
    return record.nodes == socket.gethostname() and process is not None and not _lives(process, proc)


def group_of(record: JobRecord) -> int:
    """Return the process group of a local job, which contains only the job's processes.

    Raises:
        CheckFailed: if the job runs on another machine, shares its process group with another program, or
            toolkit does not find its process.
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
            fix="press Ctrl-C in the terminal of `toolkit launch`; this stops all ranks",
        )
    try:
        group = os.getpgid(number)
    except ProcessLookupError as error:
        raise CheckFailed(f"{record.key}: process {number} of the job has just ended") from error
    if group != number:
        raise CheckFailed(
            f"{record.key}: toolkit cannot stop only this job, because the job script (process {number}) is "
            "in the process group of the program that started it",
            fix="stop the program that started the job, for example with Ctrl-C in its terminal",
        )
    return number


def end(group: int) -> bool:
    """Send SIGTERM to a process group, and SIGKILL after five seconds; return whether all processes ended."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, sign)
        if _wait_for_end(group):
            return True
    return False


def _wait_for_end(group: int) -> bool:
    deadline = time.monotonic() + _GRACE
    while time.monotonic() < deadline:
        # killpg also succeeds for zombie processes, which remain in a container without an init process.
        # Read the states of the processes, because a zombie process counts as ended.
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
    return (fields[_STARTED], (proc / _BOOT).read_text().strip()) == (process.started, process.boot)


def _fields(stat: Path) -> list[str]:
    """Return the fields of a ``/proc/PID/stat`` file that follow the program's name, which may contain blanks
    and parentheses.
    """
    try:
        return stat.read_text().rpartition(")")[2].split()
    except OSError:
        return []
