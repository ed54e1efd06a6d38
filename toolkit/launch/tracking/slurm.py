"""Slurm's words and the parsers of its answers; text in, values out, nothing is run here."""

import posixpath
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from toolkit.knowledge.slurm import slurm, state_of
from toolkit.launch.tracking.arrays import foremost, indexes, merged
from toolkit.model.job import FINAL_STATES, JobState, JobTask
from toolkit.run.command import Command

_QUERY_SECONDS = 60.0
"""A busy controller answers late; longer than this it is as good as away."""

_SHOWN = re.compile(
    r"(?:^|\s)(JobState|Reason|NodeList|ExitCode|StartTime|EndTime|Restarts|Partition|ArrayTaskId)=(\S*)"
)

Answer = Literal["told", "forgotten", "silent"]
"""Slurm told of a job, it knows of no such job, or it did not answer; the last says nothing of the job."""


@dataclass(frozen=True, slots=True)
class JobStatus:
    """``reason`` is why a job waits or failed, in Slurm's word; ``exit_code`` is None until it ended.

    ``started`` is when it began, of one that waits when Slurm expects it to, and ``ended`` when it ended,
    in the cluster's own time; empty where that is not known. ``restarts`` counts those by Slurm; ``None``
    where the answer does not hold it. ``partition`` may name several with commas. ``place`` is that among
    those that wait for their turn, and how many they are; zeros where it was not asked for.
    """

    state: JobState
    reason: str = ""
    nodes: str = ""
    exit_code: int | None = None
    answer: Answer = "told"
    started: str = ""
    ended: str = ""
    restarts: int | None = None
    partition: str = ""
    place: tuple[int, int] = (0, 0)
    tasks: tuple[JobTask, ...] = ()

    def of_tasks(self, written: str) -> "JobStatus":
        """Return the status as that of some tasks of an array too."""
        each = (
            JobTask(index=index, state=self.state, exit_code=self.exit_code, nodes=self.nodes)
            for index in indexes(written)
        )
        return replace(self, tasks=tuple(each))


def sbatch(script: str, directory: str, *options: str) -> Command:
    """Submit ``script`` from ``directory``, which becomes the job's working directory; ``options`` win."""
    return Command(("sbatch", "--parsable", *options, script), cwd=directory, timeout=_QUERY_SECONDS)


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
    """Tell a controller that knows no such job from one that is away."""
    return re.search(slurm().forgotten.pattern, errors) is not None


def says_unanswered(errors: str) -> bool:
    """Tell a controller that may have taken a job, and did not say so, from one that refused it."""
    return re.search(slurm().unanswered.pattern, errors) is not None


def parse_show_job(text: str) -> JobStatus | None:
    """Read what ``scontrol -o show job`` says, a line a task of an array; ``None`` if it is no such line."""
    return _together([status for line in text.splitlines() if (status := _shown(line)) is not None])


def _shown(line: str) -> JobStatus | None:
    fields: dict[str, str] = {}
    for name, value in _SHOWN.findall(line):
        fields.setdefault(name, value)  # a path further behind may hold anything
    if "JobState" not in fields:
        return None
    state = state_of(fields["JobState"])
    ended = state in FINAL_STATES
    restarts = fields.get("Restarts", "")
    return JobStatus(
        state=state,
        reason=_told(fields.get("Reason", "")),
        nodes=_told(fields.get("NodeList", "")),
        exit_code=_exit_code(fields.get("ExitCode", "")) if state not in ("pending", "running") else None,
        started=_told(fields.get("StartTime", "")),
        # Of one that runs it is when it has to end.
        ended=_told(fields.get("EndTime", "")) if ended else "",
        restarts=int(restarts) if restarts.isdecimal() else None,
        partition=_told(fields.get("Partition", "")),
    ).of_tasks(fields.get("ArrayTaskId", ""))


def _together(tasks: Sequence[JobStatus]) -> JobStatus | None:
    """Return the status of an array, with what is told of its tasks."""
    if not tasks:
        return None
    first = foremost(task.state for task in tasks)
    several = merged((), (one for task in tasks for one in task.tasks))
    return replace(next(task for task in tasks if task.state == first), tasks=several)


def account(number: str, seconds: float = _QUERY_SECONDS) -> Command:
    """Ask the accounting, which remembers for long where there is one."""
    columns = ("-o", "State,ExitCode,Start,End,NodeList,JobID")
    words = ("sacct", "--noheader", "--parsable2", "--allocations", *columns, "--jobs", number)
    return Command(words, timeout=seconds)


def parse_account(text: str) -> JobStatus | None:
    """Read what :func:`account` is answered, a line a task of an array; ``None`` if it holds no such job."""
    tasks = []
    for line in text.splitlines():
        word, code, started, ended, nodes, number = [*line.split("|"), "", "", "", "", ""][:6]
        if word.split():
            # Accounting writes "CANCELLED by 1000".
            state = state_of(word.split()[0])
            status = JobStatus(
                state=state,
                exit_code=_exit_code(code) if state not in ("pending", "running") else None,
                nodes=_told(nodes),
                started=_told(started),
                ended=_told(ended) if state in FINAL_STATES else "",
            )
            # A task of an array is NUMBER_INDEX.
            tasks.append(status.of_tasks(number.partition("_")[2]))
    return _together(tasks)


def some(numbers: Iterable[str], seconds: float = _QUERY_SECONDS) -> Command:
    """Ask about several jobs at once; of those that it has forgotten, the controller says nothing."""
    words = ("squeue", "--noheader", "--states=all", f"--jobs={','.join(numbers)}", "--format=%i|%T|%r|%N|%S")
    return Command(words, timeout=seconds)


def parse_some(text: str) -> dict[str, JobStatus]:
    """Read what :func:`some` is answered, of jobs that wait or run; how others ended, it does not tell."""
    tasks: dict[str, list[JobStatus]] = {}
    for line in text.splitlines():
        name, word, reason, nodes, started = [*line.strip().split("|"), "", "", "", ""][:5]
        state = state_of(word)
        if state in ("pending", "running"):
            # A task of an array is NUMBER_INDEX.
            status = JobStatus(state, _told(reason), _told(nodes), started=_told(started))
            tasks.setdefault(name.partition("_")[0], []).append(status)
    return {number: whole for number, several in tasks.items() if (whole := _together(several))}


def waiting(partition: str) -> Command:
    """Ask who waits in a partition, in the order in which they are looked at."""
    where = (f"--partition={partition}",) if partition else ()
    words = ("squeue", "--noheader", "--states=PENDING", "--sort=-p,i", "--format=%i|%r", *where)
    return Command(words, timeout=_QUERY_SECONDS)


def parse_waiting(text: str, number: str) -> tuple[int, int] | None:
    """Return a job's place among those that only wait for their turn, and how many they are."""
    lines = (line.strip().partition("|") for line in text.splitlines())
    passed = slurm().reasons.passed_over
    turns = [name.partition("_")[0] for name, _, reason in lines if name and reason not in passed]
    return (turns.index(number) + 1, len(turns)) if number in turns else None


def mine(*, live: bool = False) -> Command:
    """Ask for all jobs of the person that Slurm has, with the folders that they were submitted from.

    With ``live`` those that have ended are left out.
    """
    states = () if live else ("--states=all",)
    words = ("squeue", "--me", "--noheader", *states, "--format=%i|%Z")
    return Command(words, timeout=_QUERY_SECONDS)


def parse_mine(text: str, directory: str) -> list[str]:
    """Return the numbers of the jobs that were submitted from ``directory``, the first one first.

    Its last name is that of one job, with the second of its launch and random characters; the path above it
    may be another one, as Slurm keeps what symbolic links come to. A task of an array that goes on by itself
    submits from its own folder, which is named by its index.
    """
    name_of_job = posixpath.basename(directory)
    found = set()
    for line in text.splitlines():
        name, _, where = line.strip().partition("|")
        number = name.partition("_")[0]  # a task of an array is NUMBER_INDEX
        above, last = posixpath.split(where)
        of_job = last == name_of_job or (posixpath.basename(above) == name_of_job and last.isdecimal())
        if number.isdecimal() and of_job:
            found.add(number)
    return sorted(found, key=int)


def scancel(*numbers: str) -> Command:
    return Command(("scancel", *numbers), timeout=_QUERY_SECONDS)


def _told(text: str) -> str:
    """Return a value, and nothing for the words that Slurm has for nothing."""
    return "" if text in slurm().nothing.words else text


def _exit_code(text: str) -> int | None:
    """Read ``EXIT:SIGNAL``; a signal is given as a shell would, 128 + N."""
    found = re.fullmatch(r"(\d+):(\d+)", text.strip())
    if not found:
        return None
    code, number = int(found[1]), int(found[2])
    return 128 + number if number else code


def output_path(directory: str, output: str, number: str, name: str, task: str | None = None) -> str:
    """Return where a job writes, from the value of ``--output``: the patterns ``%j``, ``%A``, ``%x``, ``%%``.

    ``task`` is the number of one of an array, which ``%a`` stands for. Others are left as they are: only
    Slurm knows them, as it does ``%j`` of a task.
    """
    values = {"j": number, "A": number, "x": name}
    if task is not None:
        del values["j"]
        values["a"] = task

    def put(found: re.Match[str]) -> str:
        width, kind = found[1], found[2]
        if kind != "%" and kind not in values:
            return found[0]
        return "%" if kind == "%" else values[kind].zfill(int(width or 0) if kind != "x" else 0)

    return posixpath.join(directory, re.sub(r"%(\d{0,2})([aAjx%])", put, output))
