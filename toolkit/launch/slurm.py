"""Slurm's words and the parsers of its answers; text in, values out, nothing is run here."""

import re
from dataclasses import dataclass
from typing import Literal

from toolkit.model.job import JobState
from toolkit.run.command import Command

_QUERY_SECONDS = 60.0
"""A busy controller answers late; longer than this it is as good as away."""

_STATES: dict[str, JobState] = {
    "PENDING": "pending",
    "CONFIGURING": "pending",
    "REQUEUED": "pending",
    "REQUEUE_HOLD": "pending",
    "RESV_DEL_HOLD": "pending",
    "SUSPENDED": "running",
    "RUNNING": "running",
    "COMPLETING": "running",
    "STAGE_OUT": "running",
    "SIGNALING": "running",
    "STOPPED": "running",
    "COMPLETED": "completed",
    "CANCELLED": "cancelled",
    "TIMEOUT": "timeout",
    "DEADLINE": "timeout",
    "FAILED": "failed",
    "BOOT_FAIL": "failed",
    "NODE_FAIL": "failed",
    "OUT_OF_MEMORY": "failed",
    "PREEMPTED": "failed",
    "REVOKED": "cancelled",
    "LAUNCH_FAILED": "failed",
}
"""Job state codes of squeue(1) and scontrol(1)."""


Answer = Literal["told", "forgotten", "silent"]
"""Slurm told of a job, it knows of no such job, or it did not answer; the last says nothing of the job."""


@dataclass(frozen=True, slots=True)
class JobStatus:
    """``reason`` is why a job waits or failed, in Slurm's word; ``exit_code`` is None until it ended."""

    state: JobState
    reason: str = ""
    nodes: str = ""
    exit_code: int | None = None
    answer: Answer = "told"


def sbatch(script: str, directory: str) -> Command:
    """Submit ``script`` from ``directory``, which becomes the job's working directory."""
    return Command(("sbatch", "--parsable", script), cwd=directory, timeout=_QUERY_SECONDS)


def parse_sbatch(text: str) -> str | None:
    """Return the job number that ``sbatch --parsable`` printed, as ``123`` or ``123;cluster``."""
    for line in reversed(text.splitlines()):
        if found := re.fullmatch(r"(\d+)(;\S+)?", line.strip()):
            return found[1]
    return None


def show_job(number: str, seconds: float = _QUERY_SECONDS) -> Command:
    """Ask the controller about a job; it knows those of the last minutes (MinJobAge)."""
    return Command(("scontrol", "--oneliner", "show", "job", number), timeout=seconds)


def says_forgotten(errors: str) -> bool:
    """Tell a controller that knows no such job from one that is away (slurm_errno, ESLURM_INVALID_JOB_ID)."""
    return "Invalid job id" in errors


def parse_show_job(text: str) -> JobStatus | None:
    """Read one line of ``scontrol -o show job``; ``None`` if it is no such line."""
    fields = dict(re.findall(r"(?:^|\s)(JobState|Reason|NodeList|ExitCode)=(\S*)", text))
    if "JobState" not in fields:
        return None
    state = _STATES.get(fields["JobState"].rstrip("+"), "unknown")
    return JobStatus(
        state=state,
        reason="" if fields.get("Reason") == "None" else fields.get("Reason", ""),
        nodes="" if fields.get("NodeList") == "(null)" else fields.get("NodeList", ""),
        exit_code=_exit_code(fields.get("ExitCode", "")) if state not in ("pending", "running") else None,
    )


def account(number: str, seconds: float = _QUERY_SECONDS) -> Command:
    """Ask the accounting, which remembers for long where there is one."""
    words = ("sacct", "--noheader", "--parsable2", "--allocations", "-o", "State,ExitCode", "--jobs", number)
    return Command(words, timeout=seconds)


def parse_account(text: str) -> JobStatus | None:
    """Read ``sacct -P -n -X -o State,ExitCode``; ``None`` if it holds no such job."""
    for line in text.splitlines():
        word, _, code = line.partition("|")
        if word.split():
            # Accounting writes "CANCELLED by 1000".
            state = _STATES.get(word.split()[0].rstrip("+"), "unknown")
            return JobStatus(state=state, exit_code=_exit_code(code))
    return None


def scancel(number: str) -> Command:
    return Command(("scancel", number), timeout=_QUERY_SECONDS)


def _exit_code(text: str) -> int | None:
    """Read ``EXIT:SIGNAL``; a signal is given as a shell would, 128 + N."""
    found = re.fullmatch(r"(\d+):(\d+)", text.strip())
    if not found:
        return None
    code, number = int(found[1]), int(found[2])
    return 128 + number if number else code
