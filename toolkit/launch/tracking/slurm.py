"""Build Slurm commands and parse their output; no function of this module runs a command."""

import posixpath
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from toolkit.knowledge.slurm import slurm, state_of
from toolkit.launch.tracking.arrays import foremost, indexes, merge_tasks
from toolkit.model.job import FINAL_STATES, JobState, JobTask
from toolkit.run.command import Command

_QUERY_SECONDS = 60.0
"""The default timeout of a Slurm command, in seconds."""

_SHOWN = re.compile(
    r"(?:^|\s)(JobState|Reason|NodeList|ExitCode|StartTime|EndTime|Restarts|Partition|ArrayTaskId)=(\S*)"
)

Answer = Literal["answered", "forgotten", "silent"]
"""``answered``: Slurm described the job. ``forgotten``: Slurm does not know the job, or no longer knows it.
``silent``: Slurm did not answer, so the job may still run.
"""


@dataclass(frozen=True, slots=True)
class JobStatus:
    """The state of a job in Slurm.

    ``reason`` is Slurm's code for the reason why the job waits or failed. ``nodes`` is a list in Slurm's
    notation. ``exit_code`` is ``None`` until the job ends. ``started`` and ``ended`` are times in the
    cluster's time zone, or empty; for a waiting job, ``started`` is the expected start time. ``restarts`` is
    the number of times that Slurm restarted the job, or ``None`` if unknown. ``partition`` may contain
    several names with commas between them. ``place`` is the job's place in the queue and the number of jobs
    in the queue, or two zeros if unknown. ``tasks`` are the tasks of a job array.
    """

    state: JobState
    reason: str = ""
    nodes: str = ""
    exit_code: int | None = None
    answer: Answer = "answered"
    started: str = ""
    ended: str = ""
    restarts: int | None = None
    partition: str = ""
    place: tuple[int, int] = (0, 0)
    tasks: tuple[JobTask, ...] = ()

    def of_tasks(self, notation: str) -> "JobStatus":
        """Return this status with an array task for each index in Slurm's ``notation``, such as ``[4-5]``.

        Each task gets the state, the exit status and the nodes of this status.
        """
        tasks = (
            JobTask(index=index, state=self.state, exit_code=self.exit_code, nodes=self.nodes)
            for index in indexes(notation)
        )
        return replace(self, tasks=tuple(tasks))


def sbatch(script: str, directory: str, *options: str) -> Command:
    """Return the command that submits ``script`` with the working directory ``directory``.

    ``options`` override options in the script.
    """
    return Command(("sbatch", "--parsable", *options, script), cwd=directory, timeout=_QUERY_SECONDS)


def parse_sbatch(text: str) -> str | None:
    """Return the job number in the output of ``sbatch --parsable``, which is ``123`` or ``123;cluster``."""
    for line in reversed(text.splitlines()):
        if match := re.fullmatch(r"(\d+)(;\S+)?", line.strip()):
            return match[1]
    return None


def show_job(number: str, seconds: float = _QUERY_SECONDS) -> Command:
    """Return the ``scontrol`` command that shows a job.

    Slurm's controller forgets a job some minutes after the job ends (MinJobAge).
    """
    return Command(("scontrol", "--oneliner", "show", "job", number), timeout=seconds)


def says_forgotten(errors: str) -> bool:
    """Return whether an error message says that Slurm's controller does not know the job."""
    return re.search(slurm().forgotten.pattern, errors) is not None


def says_unanswered(errors: str) -> bool:
    """Return whether an error message of sbatch says that Slurm's controller did not answer.

    The controller may have accepted the job before the connection failed.
    """
    return re.search(slurm().unanswered.pattern, errors) is not None


def parse_show_job(text: str) -> JobStatus | None:
    """Return the status in the output of :func:`show_job`, or ``None`` if the output has no job.

    For an array, each line of the output describes one task, or several waiting tasks together.
    """
    return _array_status([status for line in text.splitlines() if (status := _parse_line(line)) is not None])


def _parse_line(line: str) -> JobStatus | None:
    fields: dict[str, str] = {}
    for name, value in _SHOWN.findall(line):
        fields.setdefault(name, value)  # keep the first value: a later path may contain "NAME="
    if "JobState" not in fields:
        return None
    state = state_of(fields["JobState"])
    ended = state in FINAL_STATES
    restarts = fields.get("Restarts", "")
    return JobStatus(
        state=state,
        reason=_value(fields.get("Reason", "")),
        nodes=_value(fields.get("NodeList", "")),
        exit_code=_exit_code(fields.get("ExitCode", "")) if state not in ("pending", "running") else None,
        started=_value(fields.get("StartTime", "")),
        # For a running job, Slurm's EndTime is only the time at which the job reaches its time limit.
        ended=_value(fields.get("EndTime", "")) if ended else "",
        restarts=int(restarts) if restarts.isdecimal() else None,
        partition=_value(fields.get("Partition", "")),
    ).of_tasks(fields.get("ArrayTaskId", ""))


def _array_status(tasks: Sequence[JobStatus]) -> JobStatus | None:
    """Return a job's status from the statuses in the lines of Slurm's output; ``None`` if there are no lines.

    A job array has several lines. The array gets the status of its first task that has the array's state
    (:func:`arrays.foremost`).
    """
    if not tasks:
        return None
    first = foremost(task.state for task in tasks)
    several = merge_tasks((), (task_status for task in tasks for task_status in task.tasks))
    return replace(next(task for task in tasks if task.state == first), tasks=several)


def account(number: str, seconds: float = _QUERY_SECONDS) -> Command:
    """Return the ``sacct`` command that shows a job; some sites have no accounting."""
    columns = ("-o", "State,ExitCode,Start,End,NodeList,JobID")
    words = ("sacct", "--noheader", "--parsable2", "--allocations", *columns, "--jobs", number)
    return Command(words, timeout=seconds)


def parse_account(text: str) -> JobStatus | None:
    """Return the status in the output of :func:`account`, or ``None`` if the output has no job.

    For an array, each line of the output describes one task, or several waiting tasks together.
    """
    tasks = []
    for line in text.splitlines():
        word, code, started, ended, nodes, number = [*line.split("|"), "", "", "", "", ""][:6]
        if word.split():
            # sacct prints states such as "CANCELLED by 1000", so keep only the first word of a state.
            state = state_of(word.split()[0])
            status = JobStatus(
                state=state,
                exit_code=_exit_code(code) if state not in ("pending", "running") else None,
                nodes=_value(nodes),
                started=_value(started),
                ended=_value(ended) if state in FINAL_STATES else "",
            )
            # Slurm's number of an array task has the form NUMBER_INDEX.
            tasks.append(status.of_tasks(number.partition("_")[2]))
    return _array_status(tasks)


def query_jobs(numbers: Iterable[str], seconds: float = _QUERY_SECONDS) -> Command:
    """Return the ``squeue`` command for several jobs; its output omits jobs that Slurm has forgotten."""
    words = ("squeue", "--noheader", "--states=all", f"--jobs={','.join(numbers)}", "--format=%i|%T|%r|%N|%S")
    return Command(words, timeout=seconds)


def parse_some(text: str) -> dict[str, JobStatus]:
    """Return the waiting and running jobs in the output of :func:`query_jobs`, by job number.

    The result omits ended jobs, because the output does not contain their exit statuses.
    """
    tasks: dict[str, list[JobStatus]] = {}
    for line in text.splitlines():
        name, word, reason, nodes, started = [*line.strip().split("|"), "", "", "", ""][:5]
        state = state_of(word)
        if state in ("pending", "running"):
            # Slurm's number of an array task has the form NUMBER_INDEX.
            status = JobStatus(state, _value(reason), _value(nodes), started=_value(started))
            tasks.setdefault(name.partition("_")[0], []).append(status)
    return {number: whole for number, several in tasks.items() if (whole := _array_status(several))}


def query_waiting_jobs(partition: str) -> Command:
    """Return the command that lists the waiting jobs of a partition, highest priority first.

    If ``partition`` is empty, the command lists the waiting jobs of all partitions.
    """
    where = (f"--partition={partition}",) if partition else ()
    words = ("squeue", "--noheader", "--states=PENDING", "--sort=-p,i", "--format=%i|%r", *where)
    return Command(words, timeout=_QUERY_SECONDS)


def parse_waiting(text: str, number: str) -> tuple[int, int] | None:
    """Return a job's place in the queue, and the number of jobs in the queue.

    Held jobs, and other jobs that cannot start at any priority, do not count. The result is ``None`` if the
    job ``number`` does not count, or if ``text`` does not list the job.
    """
    lines = (line.strip().partition("|") for line in text.splitlines())
    passed = slurm().reasons.passed_over
    turns = [name.partition("_")[0] for name, _, reason in lines if name and reason not in passed]
    return (turns.index(number) + 1, len(turns)) if number in turns else None


def list_own_jobs(*, live: bool = False) -> Command:
    """Return the command that lists all jobs of the user, with the working directory of each job.

    If ``live`` is true, the list omits ended jobs.
    """
    states = () if live else ("--states=all",)
    words = ("squeue", "--me", "--noheader", *states, "--format=%i|%Z")
    return Command(words, timeout=_QUERY_SECONDS)


def parse_own_jobs(text: str, directory: str) -> list[str]:
    """Return the numbers of the jobs that the user submitted from ``directory``, in ascending order.

    Slurm resolves symbolic links, so it may print a different path. Therefore, toolkit compares only the last
    part, which is unique: it contains the time of the launch and random characters. A resumed array task
    starts in a subfolder of ``directory``; the name of the subfolder is the task index.
    """
    name_of_job = posixpath.basename(directory)
    numbers = set()
    for line in text.splitlines():
        name, _, where = line.strip().partition("|")
        number = name.partition("_")[0]  # the number of an array task has the form NUMBER_INDEX
        above, last = posixpath.split(where)
        of_job = last == name_of_job or (posixpath.basename(above) == name_of_job and last.isdecimal())
        if number.isdecimal() and of_job:
            numbers.add(number)
    return sorted(numbers, key=int)


def scancel(*numbers: str) -> Command:
    return Command(("scancel", *numbers), timeout=_QUERY_SECONDS)


def _value(text: str) -> str:
    """Return a Slurm value, or an empty string for a word that means no value, such as ``(null)``."""
    return "" if text in slurm().nothing.words else text


def _exit_code(text: str) -> int | None:
    """Return the exit status from Slurm's ``EXIT:SIGNAL``; 128 + N for signal N, as in a shell."""
    match = re.fullmatch(r"(\d+):(\d+)", text.strip())
    if not match:
        return None
    code, number = int(match[1]), int(match[2])
    return 128 + number if number else code


def output_path(directory: str, output: str, number: str, name: str, task: str | None = None) -> str:
    """Return the path of a job's output file. ``output`` is the value of sbatch's option ``--output``.

    The function replaces ``%j`` and ``%A`` (job number), ``%x`` (job name) and ``%%``. For an array task, the
    function replaces ``%a`` by the task index ``task``, and keeps ``%j``, because ``number`` is the array's
    number. The function keeps all other patterns, because only Slurm knows their values.
    """
    values = {"j": number, "A": number, "x": name}
    if task is not None:
        del values["j"]
        values["a"] = task

    def put(match: re.Match[str]) -> str:
        width, kind = match[1], match[2]
        if kind != "%" and kind not in values:
            return match[0]
        return "%" if kind == "%" else values[kind].zfill(int(width or 0) if kind != "x" else 0)

    return posixpath.join(directory, re.sub(r"%(\d{0,2})([aAjx%])", put, output))
