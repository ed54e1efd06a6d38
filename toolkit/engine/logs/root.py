"""Find the root line in the output of a failed job: the first line that reports the job's fault."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from toolkit.engine.logs.clues import Cause, Clue, is_head, is_record, strip_label
from toolkit.engine.logs.consequences import without_consequences
from toolkit.engine.logs.endings import (
    NAMES_STATUS,
    cancellation,
    exit_reports,
    failed_rank,
    first_exit,
    is_late,
    is_replaced,
    rank_number,
    without_cleanup,
)
from toolkit.engine.logs.frames import class_by_frame, last_frame
from toolkit.engine.logs.handled import handled_exceptions
from toolkit.engine.logs.joblines import Line, Output
from toolkit.engine.logs.lastretry import retried_at_end
from toolkit.engine.logs.lastwords import (
    ABORT_PATTERN,
    TASK,
    is_tagged,
    last_warning,
    last_words,
    with_name_of_signal,
)
from toolkit.engine.logs.leads.blocks import last_message
from toolkit.engine.logs.leads.complaints import is_abort
from toolkit.engine.logs.leads.endedranks import exception_of_ended_rank
from toolkit.engine.logs.leads.order import LEADS
from toolkit.engine.logs.line_class import classify
from toolkit.engine.logs.ranktable import rank_in_table, rank_in_words, without_later_failures, words_of_rank
from toolkit.engine.logs.survived import (
    is_ignored,
    is_like,
    is_passed,
    only_warns,
    overcome_errors,
    survived_until,
)
from toolkit.engine.logs.traceback import Raised, tracebacks
from toolkit.engine.logs.waiting import is_wait, waited_for_ranks

_WINDOW = 200
"""Number of lines before a launcher's report of an exited rank in which toolkit first looks for a cause."""

_LAST_LINES = 8
"""Number of last lines of the output in which toolkit looks for general words of failure, such as "error", if
no launcher reports an exited rank.
"""

_SAME_REPORT = 4
"""Errors within this number of lines after the root line are part of the root line's message."""

_BEFORE_ABORT = 24
"""Maximum number of lines between a program's error and Open MPI's report that the program called
``MPI_Abort``.
"""

_INTRODUCES = re.compile(
    r"(?i)exception (?:when|while|in|during|from|occurred|raised)"
    r"|(?:failed to|error) (?:start|run|call|load)\w*[^:]*$|:$"
)
"""A pattern for the text that a logger writes before a traceback."""

_HEADING = re.compile(r"Error executing process >|terminated with an error exit status")
"""A pattern for the text that Nextflow prints before it repeats the output of the failed process."""

_ORIGINAL = " Original exception:"
"""Gloo's barrier ends its error message with this text. The next line repeats the error of the failed
connection.
"""

_COMMAND_FAILED = re.compile(r"(?:\w{1,60}\.){0,8}CalledProcessError: Command ")

_LAST_TAG = re.compile(r"\[\d+,\d+\]<std\w{1,5}>:$")


@dataclass(frozen=True, slots=True)
class RootClue:
    """The root line (the first line that reports the failure), related lines, and the failed rank and node.

    If the root line is the exception of a traceback, ``frame`` is the last frame in the user's code,
    ``files`` are the files of the frames, and ``code`` is the source code of the innermost frame.
    ``exit_reports`` are the lines in which launchers report exited ranks. ``consequences`` are errors that
    follow from the root line. ``next_errors`` are the errors in the next lines of the same message.
    """

    clue: Clue
    rank: str = ""
    node: str = ""
    frame: str = ""
    exit_reports: tuple[str, ...] = ()
    consequences: tuple[Line, ...] = ()
    files: tuple[str, ...] = ()
    code: str = ""
    next_errors: tuple[str, ...] = ()


def find_root(output: Output, clues: Sequence[Clue]) -> RootClue | None:
    """Return the root line; ``None`` if no line reports a failure. ``clues`` are the lines of the output that
    may report a fault.
    """
    heads = [clue.position for clue in clues if is_head(clue)]
    raised = tracebacks(output, heads)
    inside = {number for one in raised for number in one.numbers}
    ignored = {output.line(position).number for position in heads if is_ignored(output, position)}
    raised = [one for one in raised if min(one.numbers) not in ignored]
    before = {(line := output.line(position)).number - 1: line.task for position in heads}
    inside |= {c.line.number for c in clues if before.get(c.line.number) == c.line.task and _introduces(c)}
    inside |= {c.line.number for c in clues if c.line.number + 1 in before and _is_heading(c)}
    inside |= {c.line.number + 1 for c in clues if _ORIGINAL in c.line.text}
    told = [clue for clue in clues if clue.line.number not in inside and not is_head(clue)]
    pairs = [(one, clue) for one in raised if (clue := _of_raised(one))]
    ends = [clue.position for clue in told if clue.role == "ending"]
    handled = handled_exceptions(output, pairs, heads, ends)
    raised = [one for one in raised if one not in handled]
    made = [(clue, one.frame) for one, clue in pairs if one not in handled]
    causes = sorted(
        [(clue, "") for clue in told if clue.role == "cause"] + [m for m in made if m[0].role == "cause"],
        key=lambda pair: pair[0].position,
    )
    strong = [clue for clue, _ in causes if clue.strength >= 4]
    causes = [pair for pair in causes if not is_passed(pair[0], strong)]
    endings = [clue for clue in told if clue.role == "ending" and not is_replaced(output, clue)]
    endings = without_later_failures(endings)
    causes = without_consequences(causes, endings, told)
    if is_tagged(output, endings):
        crash = [c for c, _ in causes if c.class_ == "signal" and not c.line.task]
        causes = [p for p in causes if p[0] not in crash or p[0].position < endings[0].position]
    others = sorted(
        [clue for clue in told if clue.role == "consequence"] + [m[0] for m in made if m[0].role != "cause"],
        key=lambda clue: clue.position,
    )
    chosen = _choose(output, causes, endings, others)
    while chosen and (gone := _survived(output, chosen[0], [*(c for c, _ in causes), *others], endings)):
        causes = [pair for pair in causes if pair[0].position not in gone]
        others = [clue for clue in others if clue.position not in gone]
        chosen = _choose(output, causes, endings, others)
    if chosen is None or (chosen[0].role == "ending" and chosen[0].class_ == "exit-status"):
        chosen = _last_report(output, endings[0] if endings else None) or chosen
    return _traced(output, chosen, causes, endings, others, raised) if chosen else None


def _last_report(output: Output, ending: Clue | None) -> Cause | None:
    """Return the root line of an output in which no line names a fault; ``None`` without such a root line.

    The root line reports an operation that the program still retries at the end of the output, starts the
    last message of Open MPI, or is the last frame of an incomplete traceback.
    """
    said = retried_at_end(output, ending) or last_message(output, ending) or last_frame(output, ending)
    return (said, "") if said else None


def _traced(
    output: Output,
    root_cause: Cause,
    causes: list[Cause],
    endings: list[Clue],
    others: list[Clue],
    exceptions: list[Raised],
) -> RootClue:
    """Return the root line with related lines and the rank. If the line in ``root_cause`` refers to another
    line, such as the error before an abort, the other line is the root line.
    """
    clue, frame = root_cause
    reported = [cause for cause, _ in causes]
    for leads in LEADS:
        if source := leads(output, clue, reported):
            others, clue, frame = [clue, *others], source, ""
    clue = with_name_of_signal(output, clue)
    rank, node = failed_rank(output, clue, endings)
    rank = rank_in_table(output, clue) or rank  # srun's label is torchrun's task number, not a worker's rank
    own = next((one for one in exceptions if one.position == clue.position), None)
    first = min(own.numbers) if own else clue.line.number
    rank = rank or rank_in_words(output, clue, first)
    lost = [one for one in others if one.position != clue.position and one.class_ != "exit-status"]
    after = tuple({one.position: one.line for one in lost}.values())[:5]
    files, code = (own.files, own.code) if own else ((), "")
    ended = exit_reports([ending for ending in endings if ending.line != clue.line])
    last = clue.line.number + _SAME_REPORT
    following = (c.line.text for c in reported if clue.line.number < c.line.number <= last)
    return RootClue(clue, rank, node, frame, ended, after, files, code, tuple(following))


def _survived(output: Output, clue: Clue, errors: list[Clue], endings: list[Clue]) -> set[int]:
    """If the job survived the error in ``clue``, return the positions of the survived errors among
    ``errors``. If the error in ``clue`` may be fatal, return an empty set.
    """
    if clue.role == "ending":
        return set()
    last: int | None = clue.position
    if not only_warns(output, clue):
        if endings:
            return set()
        last = survived_until(output, clue)
    if last is None:
        return overcome_errors(output, clue, errors)
    return {one.position for one in errors if one.position <= last and is_like(clue, one)}


def _introduces(clue: Clue) -> bool:
    """Return whether a line introduces the traceback that follows the line.

    mpirun may put the tag of the next line at the end of a line, so the function ignores a tag at the end. A
    structured log line introduces no traceback, because such a line contains its whole message.
    """
    if is_record(clue.line):
        return False
    return clue.class_ == "unknown-error" or _INTRODUCES.search(_LAST_TAG.sub("", clue.line.text)) is not None


def _is_heading(clue: Clue) -> bool:
    """Return whether a line that is two lines above a traceback is a heading. A heading ends with a colon."""
    return clue.line.text.rstrip().endswith(":")


def _of_raised(error: Raised) -> Clue | None:
    """Return the exception of a traceback as a :class:`Clue`. The fault class follows from the exception's
    type and message; for some operating-system errors, the class follows from the innermost frame.
    """
    line, row = error.exception, classify(strip_label(error.exception.text))
    if error.wraps:
        return Clue(error.position, line, row.class_ if row else "python-exception", 3, "consequence")
    if row is None or (row.strength < 4 and row.role == "cause"):
        return Clue(error.position, line, "python-exception", 5, "cause")
    role = "consequence" if row.role == "ending" else row.role
    if class_ := class_by_frame(error):
        return Clue(error.position, line, class_, 5, "cause")
    return Clue(error.position, line, row.class_, 5, role, row.retry)


def _choose(output: Output, causes: list[Cause], endings: list[Clue], others: list[Clue]) -> Cause | None:
    """Return the root line and the frame that raised its exception; ``None`` if no line reports a failure.

    If the line from :func:`_strongest` may be a consequence of another rank's exit, return the earlier
    exception that stopped the other rank, if the output has such an exception.
    """
    chosen = _strongest(output, causes, endings, others)
    if chosen and not _may_follow(chosen[0]):
        return chosen
    return exception_of_ended_rank(output, causes, chosen[0] if chosen else None) or chosen


def _may_follow(clue: Clue) -> bool:
    """Return whether the failure in a line may be a consequence of another rank's exit."""
    aborted = clue.role == "ending" and ABORT_PATTERN.search(clue.line.text) is not None
    return clue.role == "consequence" or is_wait(clue) or aborted


def _strongest(output: Output, causes: list[Cause], endings: list[Clue], others: list[Clue]) -> Cause | None:
    """Return the line that names a cause most clearly (the highest ``strength`` of :class:`Clue`), and
    the frame of the line's traceback. Of several lines with this strength, usually return the earliest.

    Lines with a strength below 4 count only if they come before the launcher's report of an exited rank.
    """
    last = output.last_number
    reports = [clue.line.number for clue in endings if not _HEADING.search(clue.line.text)]
    end = next((number for number in reports if number > last - 1000), None)
    if end is None and endings:
        end = reports[-1] if reports else last
    dead = [clue for clue in endings if clue.strength >= 4 and not is_late(clue, endings)]
    near = [pair for pair in causes if pair[0].line.number >= (end or last) - _WINDOW]
    for least in (5, 4, 3):
        before = end if end is not None and least < 4 else last
        if found := [p for p in near if p[0].strength >= least and p[0].line.number <= before]:
            return _of_first_rank(found, endings)
        if least == 4 and dead and not _has_reason(dead[0], near):
            return _first_failure(dead, others), ""
    if end is not None and (far := [pair for pair in causes if pair[0].strength >= 5]):
        return far[-1]
    weak = [pair for pair in near if end is None or pair[0].line.number <= end]
    if not weak and (command := _failed_command(endings, others)):
        return command, ""
    return _weak(output, weak, endings, others, end)


def _weak(
    output: Output, causes: list[Cause], endings: list[Clue], others: list[Clue], end: int | None
) -> Cause | None:
    """Return the root line of an output in which no line clearly names a cause.

    The root line has general words of failure, is the last line of a rank, or reports a consequence or the
    exit of a rank.
    """
    last = output.last_number
    weak = [pair for pair in causes if end is not None or pair[0].line.number >= last - _LAST_LINES]
    if not weak and (cancelled := cancellation(endings)):
        return _waited_in_vain(cancelled, others) or cancelled, ""
    silent = _silent_rank(endings, others)
    if end is not None and (said := last_words(output, endings)):
        if weak and weak[-1][0].line.number >= said.line.number - 3:
            return weak[-1]
        lost = next((clue for clue in others if clue.position == said.position), None)
        return (silent or _first_alike(lost, others) if lost else said), ""
    if weak:
        return weak[0]
    if silent:
        return words_of_rank(output, silent, rank_number(silent)) or silent, ""
    if end is None:
        others = [clue for clue in others if not _was_survived(output, clue)]
    others = without_cleanup(others, endings)
    first = first_exit(endings)
    if first and others and not _lost_by(others) and first.position < others[0].position:
        return first, ""
    if others:
        return others[0], ""
    if endings and (warning := last_warning(output, endings[0])):
        return warning, ""
    named = [clue for clue in endings if NAMES_STATUS.search(clue.line.text)]
    return ((named or endings)[0], "") if endings else None


def _waited_in_vain(report: Clue, others: list[Clue]) -> Clue | None:
    """Return the first line, shortly before a cancellation, in which a rank reports that it waited in vain
    for other ranks.

    If a rank exits after its wait, Slurm prints the same message as for a cancellation by the user. If a rank
    reported that it waited in vain, toolkit assumes that the user did not cancel the job.
    """
    last = report.line.number
    return next((c for c in others if waited_for_ranks(c) and last - _WINDOW <= c.line.number < last), None)


def _first_alike(clue: Clue, others: list[Clue]) -> Clue:
    """Return the first line that has the same rank and the same fault class as ``clue``."""
    return next((c for c in others if c.line.task == clue.line.task and c.class_ == clue.class_), clue)


def _lost_by(others: list[Clue]) -> set[str]:
    """Return the ranks that report a lost connection to another rank."""
    return {clue.line.task for clue in others if clue.class_ != "exit-status"}


def _failed_command(endings: list[Clue], others: list[Clue]) -> Clue | None:
    """Return the ``CalledProcessError`` (a command failed) of the rank that exited first; ``None`` if this
    rank did not report this exception.
    """
    first = first_exit(endings)
    own = (one for one in others if first and one.line.task == rank_number(first))
    return next((one for one in own if _COMMAND_FAILED.match(strip_label(one.line.text))), None)


def _silent_rank(endings: list[Clue], others: list[Clue]) -> Clue | None:
    """Return the launcher's report of the rank that exited first, if only other ranks report a lost
    connection; otherwise, return ``None``.
    """
    first, lost = first_exit(endings), _lost_by(others)
    return first if first and lost and not lost & {"", rank_number(first)} else None


def _has_reason(abort: Clue, causes: list[Cause]) -> bool:
    """Return whether a program reported an error shortly before it called ``MPI_Abort``."""
    first = abort.line.number - _BEFORE_ABORT
    reported = (c for c, _ in causes if c.strength >= 3 and first <= c.line.number < abort.line.number)
    return is_abort(abort) and any(reported)


def _first_failure(exits: list[Clue], others: list[Clue]) -> Clue:
    """Return the first report in ``exits`` (reports of exited ranks) about a rank that did not call abort.

    If every rank called abort, take the rank of the first report. Return the first line in ``others`` that
    this rank wrote before the report; it may name the reason. Without such a line, return the first report.
    """
    hit = next((clue for clue in exits if not ABORT_PATTERN.search(clue.line.text)), None)
    rank = rank_number(exits[0])
    before = [c for c in others if c.position < exits[0].position]
    said = [c for c in before if {c.line.task, rank} & {""} or c.line.task == rank]
    if "local_rank" in exits[0].line.text and not any(c.line.task == rank for c in said):
        # On the second and later nodes, the local rank of a process differs from its rank in the job.
        said = [c for c in before if waited_for_ranks(c)] or said
    return hit or (said[0] if said else exits[0])


def _was_survived(output: Output, clue: Clue) -> bool:
    """Return whether a line is only the shell's report ``Terminated`` and other output follows."""
    return clue.line.text.strip() == "Terminated" and any(output.following(clue.position, 1))


def _of_first_rank(causes: list[Cause], endings: list[Clue]) -> Cause:
    """Return the first error line. If this line only reports that ranks are missing, look at the rank that
    the launcher names first. If this rank reports a different error within 40 lines, return this error.
    """
    first = causes[0]
    named = next((match for clue in endings if (match := TASK.search(clue.line.text))), None)
    if named is None or not named["task"] or first[0].line.task in {"", named["task"]}:
        return first
    own = [pair for pair in causes if pair[0].line.task == named["task"]]
    soon = [pair for pair in own if pair[0].line.number <= first[0].line.number + 40]
    same = [pair for pair in soon if _kind(pair[0]) != _kind(first[0])]
    return same[0] if same and first[0].strength <= same[0][0].strength and is_wait(first[0]) else first


def _kind(clue: Clue) -> str:
    return strip_label(clue.line.text)[:40]
