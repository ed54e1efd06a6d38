"""What Slurm's accounting says about the end of a job and its steps, and where the job wrote its output."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from toolkit.launch.tracking import slurm
from toolkit.run.command import Command

_SECONDS = 20.0
"""Seconds to wait for Slurm; `toolkit explain` continues without the answer after that."""

_COLUMNS = ("JobID", "State", "ExitCode", "NodeList", "Elapsed", "Timelimit", "MaxRSS", "ReqMem")
_PATHS = re.compile(r"(?:^|\s)(?:StdOut|StdErr)=(\S+)")
_WELL = ("COMPLETED", "RUNNING", "PENDING", "COMPLETING", "REQUEUED", "RESIZING", "SUSPENDED", "")
NUMBER = re.compile(r"\d{1,10}(?:_\d{1,7})?(?:\.\w{1,20})?")
"""A job of Slurm: ``812``, a task of an array ``812_3``, a step ``812.0``."""


@dataclass(frozen=True, slots=True)
class StepEnd:
    """The end of a job or step as ``sacct`` shows it; ``memory`` is the most of one task."""

    step: str
    state: str
    exit_code: str
    nodes: str = ""
    elapsed: str = ""
    limit: str = ""
    memory: str = ""
    asked: str = ""

    @property
    def has_failed(self) -> bool:
        return self.state not in _WELL

    @property
    def line(self) -> str:
        """Return the end as a line that the engine reads, such as ``sacct: 812.0 OUT_OF_MEMORY 0:125``."""
        ran = f"ran {self.elapsed} of {self.limit}" if self.limit else f"ran {self.elapsed}"
        memory = f"used {self.memory}" if self.memory else ""
        asked = f"asked for {self.asked}" if self.asked else ""
        nodes = f"on {self.nodes}" if self.nodes else ""
        words = [word for word in (nodes, ran if self.elapsed else "", memory, asked) if word]
        return f"sacct: {self.step} {self.state} {self.exit_code}" + "".join(f", {word}" for word in words)


def steps(number: str) -> Command:
    """Ask for a job and its steps."""
    words = ("sacct", "--noheader", "--parsable2", "-o", ",".join(_COLUMNS), "--jobs", number)
    return Command(words, timeout=_SECONDS)


def parse_steps(text: str) -> list[StepEnd]:
    """Read the answer to :func:`steps`, one line for each job or step."""
    found = []
    for line in text.splitlines():
        values = line.split("|")
        if len(values) != len(_COLUMNS) or not values[1].split():
            continue
        step, state, code, nodes, elapsed, limit, memory, asked = values
        # Accounting writes "CANCELLED by 1000".
        nodes = "" if nodes == "None assigned" else nodes
        found.append(StepEnd(step, state.split()[0], code, nodes, elapsed, limit, memory, asked))
    return found


def failures(ends: Sequence[StepEnd]) -> list[StepEnd]:
    """Return the ends that report a failure: steps of ranks, then the script, then the job; none repeated."""
    found: dict[tuple[str, str], StepEnd] = {}
    for end in sorted(ends, key=lambda one: ("." not in one.step, one.step.endswith((".batch", ".extern")))):
        if end.has_failed:
            found.setdefault((end.state, end.exit_code), end)
    return list(found.values())


def show(number: str) -> Command:
    """Ask the controller for the files of a job; it knows jobs of the last minutes."""
    return slurm.show_job(number, _SECONDS)


def output_files(text: str) -> list[str]:
    """Return the paths of the output files that ``scontrol show job`` names."""
    return list(dict.fromkeys(path for path in _PATHS.findall(text) if path != "/dev/null"))


def work_folder(number: str) -> Command:
    """Ask the accounting for the folder that a job was submitted from."""
    words = ("sacct", "--noheader", "--parsable2", "--allocations", "-o", "WorkDir", "--jobs", number)
    return Command(words, timeout=_SECONDS)
