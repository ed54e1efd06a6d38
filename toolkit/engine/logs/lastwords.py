"""Find the last message that a process of a job wrote before it exited or aborted."""

import re
from collections.abc import Sequence
from dataclasses import replace

from toolkit.engine.logs.clues import Clue, strip_label
from toolkit.engine.logs.joblines import Line, Output
from toolkit.engine.logs.line_class import classify_warning
from toolkit.engine.logs.topics import GENERAL_CLASSES

TASK = re.compile(
    r"^srun: error: (?P<node>\S{1,80}): tasks? (?P<task>\d+)|local_rank: (?P<local>\d+)"
    r"|process rank (?P<rank>\d+)|MPI_ABORT was invoked on rank (?P<abort>\d+)|\bon rank (?P<on>\d+)\b"
    r"|Process name: \[(?:\[[^\]]{0,80}\]|[^\[\]]{0,80}),(?P<process>\d+)\]|\(rank (?P<world>\d+) in comm 0\)"
    r"|\*\*\* reported by process \[\d{1,12},(?P<reported>\d+)\]"
    r"|\b[Rr]ank (?P<ended>\d+) (?:on host \S{1,80} )?(?:crashed|died|failed|exited|terminated)\b"
)
RANKS = ("task", "local", "rank", "abort", "on", "process", "world", "reported", "ended")

ABORT_PATTERN = re.compile(r"Aborted|exitcode ?: ?-6\b|signal:? 6\b|SIGABRT")
"""A pattern for the report of a rank's exit with SIGABRT. This rank detected a fault and called abort
itself.
"""

PROGRESS = re.compile(
    r"^(?:step|epoch|iter)|(?<!\d)\d{1,9}/\d{1,9} \[|^\s*$|^[-=*#_ ]{4,}$|^(?:job|preflight): ", re.IGNORECASE
)
_SLURM = ("srun:", "slurmstepd")
_KILLED = re.compile(r": (?:Killed|Terminated)$")
"""A pattern for the report of a rank that Slurm may have stopped because another rank exited."""

_DEMANDS = re.compile(
    r"(?i)\b(?:requires?|must|needs?|expect(?:s|ed)|at least|exactly|only \d{1,9}|please|usage|wrong|bad"
    r"|missing|stopping|quitting)\b"
)
"""A pattern for words with which a program reports wrong arguments or wrong input."""

_LEVEL = re.compile(
    r"<(?:warn|error|critical)>|^(?:\S{1,20} [\d:.]{5,20}: )?[EF] |\b(?:WARN|ERROR|FATAL|CRITICAL)\b"
)
"""A pattern for the level in a library's log line. Such a line explains more than the report of the abort
after it.
"""

_WARNED = 40
"""If no line reports an error, toolkit looks for warnings in this number of lines before the exit of
a rank.
"""

_WARNING = re.compile(r"^\[W\d{0,4} |^W\d{4} |^\S{1,20} [\d:.]{5,20}: W |\bWARN(?:ING)?\b")

_INFORMS = re.compile(r"^I\d{4} \d\d:|All log messages before absl::InitializeLog\(\)")
"""A pattern for a normal message of a library that logs with Abseil, such as TensorFlow."""

ANNOUNCES = re.compile(r"(?i)^(?:\w+ ){0,4}(?:quitting|stopping|exiting|aborting)[.!]{0,3}$")
"""A pattern for a line that only announces the end of the program."""

_WARNS = re.compile(r"^\W{0,4}WARNING\b")
"""A pattern for a warning that a process writes between its error and its abort."""

_RECEIVED = "Process received signal"
"""Text in Open MPI's report of a signal; one of the next lines has the name of the signal."""

_NAMED = 4
"""Number of lines after Open MPI's report of a signal in which toolkit looks for the signal's name. Other
processes may write lines between the report and the signal's name.
"""

_FRAME = re.compile(
    r"(?:@|#\d{1,3}) +0x[\da-f]{4,}|^(?:#\d{1,3})? +(?:\w+::)+~?\w+\(|\*\*\* SIG\w{2,6} received"
)
"""A pattern for a line of a stack trace that a signal handler writes."""

_ENDS = re.compile(r"\S{0,40} ?terminate called without")
"""A pattern for the line in which the C++ runtime says why it aborts. A rank's label may be before this text.
"""

_FRAMES = 40
"""Maximum number of lines between an error and the report of an abort; most of these lines are stack frames.
"""


def with_name_of_signal(output: Output, clue: Clue) -> Clue:
    """If a line is Open MPI's report of a signal, return the later line with the signal's name; otherwise
    return the given line.
    """
    if _RECEIVED not in clue.line.text:
        return clue
    process = clue.line.text.partition("***")[0]
    after = output.places_after(clue.position, _NAMED)
    own = (place for place in after if place[1].text.startswith(f"{process}Signal: "))
    position, line = next(own, (clue.position, clue.line))
    return replace(clue, position=position, line=line)


def said_before_abort(output: Output, clue: Clue, causes: Sequence[Clue]) -> Clue | None:
    """Return the error that a process reported directly before it aborted. ``clue`` is the root line (the
    first line that reports the failure). The result is ``None`` if the process reported no error, or if
    ``clue`` does not report an abort.
    """
    if clue.class_ != "signal":
        return None
    if _RECEIVED in clue.line.text and ABORT_PATTERN.search(output.text_after(clue.position)):
        first = clue.line.number - _FRAMES
        near = [one for one in causes if first < one.line.number < clue.line.number]
        return next((one for one in near if one.class_ != "signal" and one.line.task == clue.line.task), None)
    if not ABORT_PATTERN.search(clue.line.text):
        return None
    known = {one.position: one for one in causes if one.class_ != "signal" or _ENDS.match(one.line.text)}
    for position, line in reversed(output.before(clue.position, _FRAMES)):
        text = strip_label(line.text)
        if line.task != clue.line.task or not text.strip() or _FRAME.search(text):
            continue
        if _WARNS.match(text) or ANNOUNCES.match(text):
            continue
        if position in known or _LEVEL.search(text):
            return known.get(position) or Clue(position, line, "unknown-error", 3, "cause")
        if not text.startswith((" ", "\t")):
            return None
    return None


def last_warning(output: Output, ending: Clue) -> Clue | None:
    """Return the first warning that names a fault in the last lines before ``ending``; ``None`` without such
    a warning. In ``ending``, the launcher reports the exit of a rank.
    """
    for position, line in output.before(ending.position, _WARNED):
        text = strip_label(line.text)
        row = classify_warning(text) if _WARNING.search(text) else None
        if row is not None and row.class_ not in GENERAL_CLASSES:
            return Clue(position, line, row.class_, 2, "consequence", row.retry)
    return None


def last_words(output: Output, endings: list[Clue]) -> Clue | None:
    """Return the last line that the rank that failed first wrote before its exit; ``None`` if this line names
    no fault.
    """
    ranks = [(c, m["task"]) for c in endings if (m := TASK.search(c.line.text)) and m["task"]]
    exited = [pair for pair in ranks if not _KILLED.search(pair[0].line.text)]
    named = next(iter(exited or ranks), None)
    if named is None and not is_tagged(output, endings):
        return None
    clue, rank = named or (endings[0], "")
    lines = output.before(clue.position, 200)
    labelled = any(line.task for _, line in lines)
    own = [place for place in lines if not labelled or (place[1].task == rank if rank else place[1].task)]
    if last := _last_sentence(own):
        text = strip_label(last[1].text)
        told = (labelled or _DEMANDS.search(text)) and not PROGRESS.search(text)
        return Clue(*last, "exit-status", 2, "cause") if told else None
    # Often, only rank 0 prints why all ranks exit.
    other = _last_sentence(lines)
    said = other is not None and _DEMANDS.search(strip_label(other[1].text))
    return Clue(*other, "exit-status", 2, "cause") if other and said else None


def _last_sentence(lines: list[tuple[int, Line]]) -> tuple[int, Line] | None:
    """Return the last line that a program wrote, and its position; ``None`` without such a line.

    The function skips single words such as "started" and normal messages of libraries, because they name no
    fault.
    """
    for position, line in reversed(lines):
        text = strip_label(line.text)
        if " " in text.strip() and not text.startswith(_SLURM) and not _INFORMS.search(text):
            return position, line
    return None


def is_tagged(output: Output, endings: list[Clue]) -> bool:
    """Return whether any of the 50 lines before the first report of an exit has a tag of mpirun."""
    return bool(endings) and any("<std" in line.tag for _, line in output.before(endings[0].position, 50))
