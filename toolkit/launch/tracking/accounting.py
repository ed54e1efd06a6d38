"""Read from Slurm's accounting how a job and its steps ended, and find the job's output files."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from toolkit.launch.tracking import slurm
from toolkit.run.command import Command

_SECONDS = 20.0
"""The timeout of a query to Slurm in seconds. After the timeout, ``toolkit explain`` continues without
Slurm's answer.
"""

_COLUMNS = ("JobID", "State", "ExitCode", "NodeList", "Elapsed", "Timelimit", "MaxRSS", "ReqMem")
_PATHS = re.compile(r"(?:^|\s)(?:StdOut|StdErr)=(\S+)")
_WELL = ("COMPLETED", "RUNNING", "PENDING", "COMPLETING", "REQUEUED", "RESIZING", "SUSPENDED", "")
NUMBER = re.compile(r"\d{1,10}(?:_\d{1,7})?(?:\.\w{1,20})?")
"""A pattern for the number of a Slurm job (``812``), an array task (``812_3``) or a step (``812.0``)."""


@dataclass(frozen=True, slots=True)
class StepEnd:
    """How a job or step ended, from ``sacct``; ``memory`` is the largest memory use of one task."""

    step: str
    state: str
    exit_code: str
    nodes: str = ""
    elapsed: str = ""
    limit: str = ""
    memory: str = ""
    memory_request: str = ""

    @property
    def has_failed(self) -> bool:
        return self.state not in _WELL

    @property
    def line(self) -> str:
        """How a job or step ended, as one line, such as ``sacct: 812.0 OUT_OF_MEMORY 0:125, on node1``."""
        ran = f"ran {self.elapsed} of {self.limit}" if self.limit else f"ran {self.elapsed}"
        memory = f"used {self.memory}" if self.memory else ""
        memory_request = f"asked for {self.memory_request}" if self.memory_request else ""
        nodes = f"on {self.nodes}" if self.nodes else ""
        words = [word for word in (nodes, ran if self.elapsed else "", memory, memory_request) if word]
        return f"sacct: {self.step} {self.state} {self.exit_code}" + "".join(f", {word}" for word in words)


def steps(number: str) -> Command:
    """Return the ``sacct`` command that lists a job and its steps."""
    words = ("sacct", "--noheader", "--parsable2", "-o", ",".join(_COLUMNS), "--jobs", number)
    return Command(words, timeout=_SECONDS)


def parse_steps(text: str) -> list[StepEnd]:
    """Return how a job and its steps ended, from the output of the command that :func:`steps` returns."""
    ends = []
    for line in text.splitlines():
        values = line.split("|")
        if len(values) != len(_COLUMNS) or not values[1].split():
            continue
        step, state, code, nodes, elapsed, limit, memory, memory_request = values
        nodes = "" if nodes == "None assigned" else nodes
        # sacct prints states such as "CANCELLED by 1000", so keep only the first word of a state.
        ends.append(StepEnd(step, state.split()[0], code, nodes, elapsed, limit, memory, memory_request))
    return ends


def failures(step_ends: Sequence[StepEnd]) -> list[StepEnd]:
    """Return the failed parts of a job: steps of srun, then the steps ``batch`` and ``extern``, then the job.

    Of several parts with the same state and exit status, return only the first.
    """
    failed_ends: dict[tuple[str, str], StepEnd] = {}
    for end in sorted(
        step_ends,
        key=lambda step_end: ("." not in step_end.step, step_end.step.endswith((".batch", ".extern"))),
    ):
        if end.has_failed:
            failed_ends.setdefault((end.state, end.exit_code), end)
    return list(failed_ends.values())


def show(number: str) -> Command:
    """Return the ``scontrol`` command that shows a job.

    Slurm's controller forgets a job some minutes after the job ends.
    """
    return slurm.show_job(number, _SECONDS)


def output_files(text: str) -> list[str]:
    """Return the paths of the output files in the output of ``scontrol show job``."""
    return list(dict.fromkeys(path for path in _PATHS.findall(text) if path != "/dev/null"))


def work_folder(number: str) -> Command:
    """Return the ``sacct`` command that prints the folder from which the user submitted a job."""
    words = ("sacct", "--noheader", "--parsable2", "--allocations", "-o", "WorkDir", "--jobs", number)
    return Command(words, timeout=_SECONDS)
