"""Read the reports of launchers: which rank exited first, how the rank exited, and which ranks the launcher
stopped.
"""

import re

from toolkit.engine.logs.clues import Clue, strip_label
from toolkit.engine.logs.joblines import Output
from toolkit.engine.logs.lastwords import RANKS, TASK
from toolkit.engine.logs.ranktable import rank_in_table, rank_of_process
from toolkit.engine.logs.survived import survived_until

_ABSENT = re.compile(
    r"\bRank (\d+) failed to pass monitoredBarrier"
    r"|tasks are unhealthy \(stopped sending heartbeats\): ?(?:\S{0,80}/task:)?(\d+)"
)
"""A pattern for a message in which a waiting rank names the rank for which it waited."""

_NODE = re.compile(r"(?i)\b(?:failed|failure) on (?:node )?([a-z][\w.-]{0,62}\d)\b(?!/)")
"""A pattern for the name of a failed node in a message from Slurm."""

NAMES_STATUS = re.compile(
    r"exitcode|: tasks? |ended as |exit(?:ed)? (?:code|status)|signal \d|DUE TO TASK|FATAL: doom"
    r"|EXIT CODE: "
)
_EXITED = re.compile(
    r"^srun: error: \S{1,80}: tasks? [\d,\-]{1,200}: Exited with exit code (?!1(?:29|30|37|43)\b)"
)
"""A pattern for srun's report of a rank that the launcher did not stop. If the launcher stops a rank, the
exit code is 128 plus the signal's number, such as 143; the pattern excludes these codes.
"""

_STOPPED = re.compile(r"exitcode *: ?-15\b|SIGTERM|: Terminated$")
_PASSIVE = re.compile(r"Terminated|Killed|Broken pipe|Interrupt|exitcode ?: ?-15\b|SIGTERM")
_CANCELLED = re.compile(
    r"\*\*\* (?:JOB|STEP) \S{1,80} (?:ON \S{1,80} )?CANCELLED AT |^scancel: |ended as cancelled"
)
_NODE_FAILED = "DUE TO NODE FAILURE"
_JOB_CANCELLED = "*** JOB "
_BANNER = "BAD TERMINATION OF ONE OF"
_CLEANS_UP = re.compile(r"^\[(?:proxy:|mpiexec@)")
"""A pattern for a message of Hydra, MPICH's launcher. Hydra's banner says that users can ignore the messages
after the banner.
"""

_HELPER = re.compile(
    r"(?i)^(?!srun|slurmstepd|sacct|mpirun|prterun|job:).{0,80}\b(?:worker|process|loader|child)\b"
)
"""A pattern for a line in which a program, not a launcher, reports the exit of a process that the program
started.
"""

_LABELS = re.compile(rb"(?m)^ *(\d+): ")
_CTEST = re.compile(rb"(?m)^ *\d+: Test (?:command|timeout computed to be): ")
"""Patterns for labels at the start of lines, and for a line that ctest prints with the number of a test."""


def is_replaced(output: Output, ending: Clue) -> bool:
    """Return whether ``ending`` reports the exit of a helper process, such as a data loader, and the program
    that started this process continued.
    """
    helper = _HELPER.search(ending.line.text) and not TASK.search(ending.line.text)
    return bool(helper) and survived_until(output, ending) is not None


def without_cleanup(others: list[Clue], endings: list[Clue]) -> list[Clue]:
    """Return the lines ``others`` without the messages that Hydra, MPICH's launcher, prints after its banner
    about the exited rank.
    """
    banner = next((clue.position for clue in endings if _BANNER in clue.line.text), None)
    if banner is None:
        return others
    return [c for c in others if c.position < banner or not _CLEANS_UP.match(strip_label(c.line.text))]


def rank_number(clue: Clue) -> str:
    """Return the number of the rank that a launcher names in a line; empty if the line names no rank."""
    found = TASK.search(clue.line.text)
    return next((found[name] for name in RANKS if found[name]), "") if found else ""


def first_exit(endings: list[Clue]) -> Clue | None:
    """Return the first line in which a launcher names a rank and its exit status or signal."""
    return next((clue for clue in endings if rank_number(clue) and NAMES_STATUS.search(clue.line.text)), None)


def cancellation(endings: list[Clue]) -> Clue | None:
    """Return the line that reports the cancellation of the job or its step. The result is ``None`` if an
    earlier line names an exited rank, or if Slurm cancelled the step because a rank exited with an error.
    """
    first = next((c for c in endings if _CANCELLED.search(c.line.text) or rank_number(c)), None)
    if first is None or not _CANCELLED.search(first.line.text) or _was_stopped(endings[-1], endings):
        return None
    if _NODE_FAILED in first.line.text:
        return Clue(first.position, first.line, "node-or-hardware", 4, "ending", "node")
    return Clue(first.position, first.line, "cancelled", 4, "ending", "transient")


def is_stopped(text: str) -> bool:
    """Return whether a line reports a rank that the launcher itself stopped."""
    return _STOPPED.search(text) is not None


def is_late(clue: Clue, endings: list[Clue]) -> bool:
    """Return whether a line reports a rank that stopped because another rank failed, or because the user
    cancelled the job.
    """
    if not _PASSIVE.search(clue.line.text):
        return False
    first = next((ending for ending in endings if TASK.search(ending.line.text)), clue)
    by_user = any(_JOB_CANCELLED in one.line.text for one in endings if one.position < clue.position)
    return clue is not first or by_user or _was_stopped(clue, endings)


def _was_stopped(clue: Clue, endings: list[Clue]) -> bool:
    """Return whether, before the line ``clue``, Slurm cancelled the job step because a rank exited with an
    error.

    Slurm first reports the ranks that it killed, and later the rank that exited with an error. If a user
    cancelled the job, Slurm prints that the job (not only the step) is cancelled, and the result is False.
    """
    cancelled = any(_CANCELLED.search(one.line.text) for one in endings if one.position < clue.position)
    texts = [one.line.text for one in endings]
    return cancelled and any(map(_EXITED.search, texts)) and not any(_JOB_CANCELLED in text for text in texts)


def failed_rank(output: Output, clue: Clue, endings: list[Clue]) -> tuple[str, str]:
    """Return the rank that failed first and the node of this rank. A value is empty if no line names it.

    Args:
        output: the job output.
        clue: the root line (the first line that reports the failure).
        endings: the lines in which launchers report that ranks exited.
    """
    rank, node = clue.line.task if _is_rank(output, clue, endings) else "", ""
    if _CANCELLED.search(clue.line.text):
        return "", ""
    if absent := _ABSENT.search(clue.line.text):
        return next(number for number in absent.groups() if number), node
    if _were_killed_together(clue, endings):
        return "", ""
    for one in [clue, *endings]:
        named = _rank_and_node(output, one)
        if named and rank in {"", named[0]}:
            return named
    failed = _NODE.search(clue.line.text)
    return rank, node or (failed[1] if failed else "")


def _is_rank(output: Output, clue: Clue, endings: list[Clue]) -> bool:
    """Return whether the number at the start of the line ``clue`` is a rank. The label ``3: `` of ``srun
    --label`` may also be the number of another item, such as a test of ctest.

    Such a label is a rank in any of these cases: blanks align it, slurmstepd wrote a line near it, another
    line has a different label, or a launcher reports the exit of this rank.
    """
    if clue.line.tag or not clue.line.task:
        return True
    page = next((page for page in output.pages if page.start <= clue.position < page.end), None)
    text = output.content(page) if page else b""
    if _CTEST.search(text):
        return False
    if clue.line.text.startswith(" ") or b"slurmstepd" in text:
        return True
    labels = {found[1] for found in _LABELS.finditer(text)}
    return len(labels) > 1 or any(rank_number(one) == clue.line.task for one in endings)


def _were_killed_together(clue: Clue, endings: list[Clue]) -> bool:
    """Return whether several ranks were killed, and the output does not show which rank was killed first.

    This is the case if all reports of ranks, including the root line ``clue``, only say that a rank was
    killed, and if Slurm cancelled the job step before the first report. With Open MPI 5, the output can
    look the same if only one rank was killed, and the result is True.
    """
    reports = [one for one in endings if TASK.search(one.line.text)]
    if clue.role != "ending" or len(reports) < 2 or not all(map(_is_passive, (clue, *reports))):
        return False
    return any(_CANCELLED.search(one.line.text) and one.position < reports[0].position for one in endings)


def _is_passive(ending: Clue) -> bool:
    return _PASSIVE.search(ending.line.text) is not None


def _rank_and_node(output: Output, ending: Clue) -> tuple[str, str] | None:
    """Return the rank and the node that a launcher's report names. The result is ``None`` if the report names
    no rank, or if it is a row about a stopped rank in torchrun's table.

    In torchrun's table, the rank is not in the row of the exit code but in a row above.
    """
    text = ending.line.text
    found = TASK.search(text)
    if found is None:
        number = "" if is_stopped(text) else rank_in_table(output, ending)
        return (number, "") if number else None
    return rank_of_process(output, ending) or rank_number(ending), found["node"] or ""


def exit_reports(endings: list[Clue]) -> tuple[str, ...]:
    """Return at most three lines in which launchers report that ranks exited."""
    return tuple(dict.fromkeys(clue.line.citation for clue in endings))[:3]
