"""Find the root line of a failed job: the first line that reports its fault."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from toolkit.engine.logs.clues import HEAD, Clue, strip_label
from toolkit.engine.logs.codes import deciding_code
from toolkit.engine.logs.joblines import Line, Output
from toolkit.engine.logs.lastwords import (
    ABORT_PATTERN,
    RANKS,
    TASK,
    is_tagged,
    last_warning,
    last_words,
    said_before_abort,
    with_name_of_signal,
)
from toolkit.engine.logs.ranktable import rank_in_table, rank_of_process, without_later_failures
from toolkit.engine.logs.rows import classify
from toolkit.engine.logs.survived import is_ignored, only_warns, survived_until
from toolkit.engine.logs.topics import GENERAL_CLASSES, quoted_fault
from toolkit.engine.logs.traceback import Raised, tracebacks

_WINDOW = 200
"""Number of lines before the launcher stops the ranks in which toolkit searches first."""

_LAST_LINES = 8
"""Number of last lines in which words of failure count if no launcher reports the end of ranks."""

_SAME_REPORT = 4
"""Number of lines after a root line whose errors belong to the same report."""

_ABSENT = re.compile(
    r"\bRank (\d+) failed to pass monitoredBarrier"
    r"|tasks are unhealthy \(stopped sending heartbeats\): ?(?:\S{0,80}/task:)?(\d+)"
)
"""A rank for which others waited, as one of the waiting ranks names it."""

_NODE = re.compile(r"(?i)\b(?:failed|failure) on (?:node )?([a-z][\w.-]{0,62}\d)\b(?!/)")
"""A node that Slurm names in the root line."""

_NAMES_STATUS = re.compile(
    r"exitcode|: tasks? |ended as |exit(?:ed)? (?:code|status)|signal \d|DUE TO TASK|FATAL: doom"
)
_EXITED = re.compile(
    r"^srun: error: \S{1,80}: tasks? [\d,\-]{1,200}: Exited with exit code (?!1(?:29|30|37|43)\b)"
)
"""A rank that exited itself; 128 and the number of a signal is the exit code of a rank that was stopped."""

_STOPPED = re.compile(r"exitcode ?: ?-15\b|SIGTERM|: Terminated$")
_PASSIVE = re.compile(r"Terminated|Killed|Broken pipe|Interrupt|exitcode ?: ?-15\b|SIGTERM")
_CANCELLED = re.compile(
    r"\*\*\* (?:JOB|STEP) \S{1,80} ON \S{1,80} CANCELLED AT |^scancel: |ended as cancelled"
)
_JOB_CANCELLED = "error: *** JOB "
_HELPER = re.compile(
    r"(?i)^(?!srun|slurmstepd|sacct|mpirun|prterun|job:).{0,80}\b(?:worker|process|loader|child)\b"
)
"""A line of a program, but not of a launcher, about the end of a process that the program started."""

_INTRODUCES = re.compile(
    r"(?i)exception (?:when|while|in|during|from|occurred|raised)"
    r"|(?:failed to|error) (?:start|run|call|load)\w*[^:]*$|:$"
)
"""Text of a logger before a traceback."""

_HEADING = re.compile(r"Error executing process >|terminated with an error exit status")
"""What Nextflow says before it repeats the output of the failed process."""

_LAST_TAG = re.compile(r"\[\d+,\d+\]<std\w{1,5}>:$")

_TIMED_OUT = re.compile(
    r"(?i)timed? ?out waiting|wait timeout|barrier timed out|store based barrier|collective operation timeout"
    r"|watchdog got stuck|DEADLINE_EXCEEDED|timed out names?|GetKeyValue\(\) timed out|has been waiting for"
    r"|clients joined|stopped sending heartbeats|is stalled for longer than"
)

_NO_GPU_FOUND = re.compile(
    r"(?i)no (?:supported |usable |visible |available )*(?:cuda |hip |rocm |gpu |accelerator )?"
    r"(?:devices?|gpus?|accelerators?) (?:(?:was|were|is|are) )?(?:found|available|detected|visible)"
    r"|unable to initialize backend|not in the list of known backends|unknown backend"
    r"|(?:cuda|rocm|gpu) is not available|cuda\.is_available\(\) is false"
)
"""What a framework prints after every failed attempt to use a GPU, whatever the reason."""

_ABOUT_GPU = re.compile(r"\b(?:CUDA|GPU|ROCm|HIP|[Cc]ompute capability)\b")

_GPU_CODES = ("cuda", "hip")
_GPU_CLASSES = {"cuda-or-hip", "gpu-handover", "node-or-hardware"}


@dataclass(frozen=True, slots=True)
class RootClue:
    """The line that reports the failure first, the lines that belong to it, and the rank that wrote it."""

    clue: Clue
    rank: str = ""
    node: str = ""
    frame: str = ""
    ended: tuple[str, ...] = ()
    consequences: tuple[Line, ...] = ()
    files: tuple[str, ...] = ()
    following: tuple[str, ...] = ()


def find_root(output: Output, clues: Sequence[Clue]) -> RootClue | None:
    """Return the root line; ``None`` if no line reports a failure."""
    heads = [clue.position for clue in clues if HEAD in clue.line.text]
    raised = tracebacks(output, heads)
    inside = {number for one in raised for number in one.numbers}
    ignored = {output.line(position).number for position in heads if is_ignored(output, position)}
    raised = [one for one in raised if min(one.numbers) not in ignored]
    before = {output.line(position).number - 1 for position in heads}
    inside |= {c.line.number for c in clues if c.line.number in before and _introduces(c)}
    told = [clue for clue in clues if clue.line.number not in inside and HEAD not in clue.line.text]
    made = [(clue, one.frame) for one in raised if (clue := _of_raised(one))]
    causes = sorted(
        [(clue, "") for clue in told if clue.role == "cause"] + [m for m in made if m[0].role == "cause"],
        key=lambda pair: pair[0].position,
    )
    endings = [clue for clue in told if clue.role == "ending" and not _is_replaced(output, clue)]
    endings = without_later_failures(endings)
    if is_tagged(output, endings):
        crash = [c for c, _ in causes if c.class_ == "signal" and not c.line.task]
        causes = [p for p in causes if p[0] not in crash or p[0].position < endings[0].position]
    others = sorted(
        [clue for clue in told if clue.role == "consequence"] + [m[0] for m in made if m[0].role != "cause"],
        key=lambda clue: clue.position,
    )
    chosen = _choose(output, causes, endings, others)
    while chosen is not None and (last := _survived(output, chosen[0], endings)) is not None:
        causes = [pair for pair in causes if pair[0].position > last]
        others = [clue for clue in others if clue.position > last]
        chosen = _choose(output, causes, endings, others)
    return _traced(output, chosen, causes, endings, others, raised) if chosen else None


def _traced(
    output: Output,
    chosen: tuple[Clue, str],
    causes: list[tuple[Clue, str]],
    endings: list[Clue],
    others: list[Clue],
    raised: list[Raised],
) -> RootClue:
    """Return the line that the chosen line refers to, with its related lines and its rank."""
    clue, frame = chosen
    reported = [cause for cause, _ in causes]
    for leads in (said_before_abort, quoted_fault, _gpu_error_before):
        if source := leads(output, clue, reported):
            others, clue, frame = [clue, *others], source, ""
    clue = with_name_of_signal(output, clue)
    rank, node = _failed_rank(output, clue, endings)
    rank = rank or rank_in_table(output, clue)
    lost = [one for one in others if one.position != clue.position and one.class_ != "exit-status"]
    after = tuple(one.line for one in lost[:5])
    files = next((one.files for one in raised if one.position == clue.position), ())
    ended = _exit_reports([ending for ending in endings if ending.line != clue.line])
    last = clue.line.number + _SAME_REPORT
    following = (c.line.text for c in reported if clue.line.number < c.line.number <= last)
    return RootClue(clue, rank, node, frame, ended, after, files, tuple(following))


def _is_replaced(output: Output, ending: Clue) -> bool:
    """Return whether a program continues after it reports the end of one of its helpers."""
    helper = _HELPER.search(ending.line.text) and not TASK.search(ending.line.text)
    return bool(helper) and survived_until(output, ending) is not None


def _survived(output: Output, clue: Clue, endings: list[Clue]) -> int | None:
    """Return the position up to which the job survived its errors; ``None`` if an error may have ended it."""
    if clue.role == "ending":
        return None
    if only_warns(output, clue):
        return clue.position
    return None if endings else survived_until(output, clue)


def _introduces(clue: Clue) -> bool:
    """Return whether a line before a traceback introduces it; mpirun may end a line with the next tag."""
    return clue.class_ == "unknown-error" or _INTRODUCES.search(_LAST_TAG.sub("", clue.line.text)) is not None


def _of_raised(one: Raised) -> Clue | None:
    """Return the exception of a traceback as a clue; its class follows from its message, or from its type."""
    row = classify(strip_label(one.exception.text))
    if one.wraps:
        return Clue(one.position, one.exception, row.class_ if row else "python-exception", 3, "consequence")
    if row is None or (row.strength < 4 and row.role == "cause"):
        return Clue(one.position, one.exception, "python-exception", 5, "cause")
    role = "consequence" if row.role == "ending" else row.role
    return Clue(one.position, one.exception, row.class_, 5, role, row.retry)


def _choose(
    output: Output, causes: list[tuple[Clue, str]], endings: list[Clue], others: list[Clue]
) -> tuple[Clue, str] | None:
    """Return the strongest cause before the launcher stops the ranks, the earliest if several are as strong;
    and the cause's frame."""
    last = output.last_number
    reports = [clue.line.number for clue in endings if not _HEADING.search(clue.line.text)]
    end = next((number for number in reports if number > last - 1000), None)
    if end is None and endings:
        end = reports[-1] if reports else last
    dead = [clue for clue in endings if clue.strength >= 4 and not _is_late(clue, endings)]
    near = [pair for pair in causes if pair[0].line.number >= (end or last) - _WINDOW]
    for least in (5, 4, 3):
        before = end if end is not None and least < 4 else last
        if found := [p for p in near if p[0].strength >= least and p[0].line.number <= before]:
            return _of_first_rank(found, endings)
        if least == 4 and dead:
            return _first_failure(dead, others), ""
    if end is not None and (far := [pair for pair in causes if pair[0].strength >= 5]):
        return far[-1]
    return _weak(
        output, [pair for pair in near if end is None or pair[0].line.number <= end], endings, others, end
    )


def _weak(
    output: Output, near: list[tuple[Clue, str]], endings: list[Clue], others: list[Clue], end: int | None
) -> tuple[Clue, str] | None:
    """Return words of failure, last words of a rank, a consequence or an ending, as no line names a cause."""
    last = output.last_number
    weak = [pair for pair in near if end is not None or pair[0].line.number >= last - _LAST_LINES]
    if not weak and (cancelled := _cancellation(endings)):
        return cancelled, ""
    silent = _silent_rank(endings, others)
    if end is not None and (said := last_words(output, endings)):
        if weak and weak[-1][0].line.number >= said.line.number - 3:
            return weak[-1]
        lost = next((clue for clue in others if clue.position == said.position), None)
        return (silent or lost if lost else said), ""
    if weak:
        return weak[0]
    if silent:
        return silent, ""
    if end is None:
        others = [clue for clue in others if not _was_survived(output, clue)]
    first = _first_exit(endings)
    if first and others and not _lost_by(others) and first.position < others[0].position:
        return first, ""
    if others:
        return others[0], ""
    if endings and (warning := last_warning(output, endings[0])):
        return warning, ""
    named = [clue for clue in endings if _NAMES_STATUS.search(clue.line.text)]
    return ((named or endings)[0], "") if endings else None


def _first_exit(endings: list[Clue]) -> Clue | None:
    """Return the first line of a launcher that names a rank and how it ended."""
    return next((clue for clue in endings if _number(clue) and _NAMES_STATUS.search(clue.line.text)), None)


def _lost_by(others: list[Clue]) -> set[str]:
    """Return the ranks that report that they lost another rank."""
    return {clue.line.task for clue in others if clue.class_ != "exit-status"}


def _silent_rank(endings: list[Clue], others: list[Clue]) -> Clue | None:
    """Return how the first rank ended, if it wrote no error and all errors are of ranks that lost it."""
    first, lost = _first_exit(endings), _lost_by(others)
    return first if first and lost and not lost & {"", _number(first)} else None


def only_misses_gpu(text: str) -> bool:
    """Return whether a line says that no GPU was found, without the name of a GPU error."""
    return _NO_GPU_FOUND.search(text) is not None and deciding_code(text, _GPU_CODES) is None


def _gpu_error_before(output: Output, clue: Clue, causes: Sequence[Clue]) -> Clue | None:
    """Return the first line of a rank that names a GPU error, before it reported that it found no GPU."""
    vague = clue.class_ in GENERAL_CLASSES and _ABOUT_GPU.search(clue.line.text)
    if not vague and not only_misses_gpu(clue.line.text):
        return None
    known = {cause.position: cause for cause in causes if cause.class_ in _GPU_CLASSES}
    for position, line in output.before(clue.position, _WINDOW):
        if line.task != clue.line.task or _NO_GPU_FOUND.search(line.text):
            continue
        code = deciding_code(line.text, _GPU_CODES)
        if code:
            return Clue(position, line, code.class_, 5, "cause", code.retry)
        if position in known:
            return known[position]
    return None


def _first_failure(dead: list[Clue], others: list[Clue]) -> Clue:
    """Return the line about the end of the first rank; if the rank aborted itself, the line with the
    reason."""
    hit = next((clue for clue in dead if not ABORT_PATTERN.search(clue.line.text)), None)
    rank = _number(dead[0])
    said = [
        c
        for c in others
        if c.position < dead[0].position and ({c.line.task, rank} & {""} or c.line.task == rank)
    ]
    return hit or (said[0] if said else dead[0])


def _cancellation(endings: list[Clue]) -> Clue | None:
    """Return the line about the job's cancellation, if no rank ended before it."""
    first = next((c for c in endings if _CANCELLED.search(c.line.text) or _number(c)), None)
    if first is None or not _CANCELLED.search(first.line.text) or _was_stopped(endings[-1], endings):
        return None
    return Clue(first.position, first.line, "cancelled", 4, "ending", "transient")


def _was_survived(output: Output, clue: Clue) -> bool:
    """Return whether a line only reports the end of a helper, and other output follows."""
    return clue.line.text.strip() == "Terminated" and any(output.following(clue.position, 1))


def _number(clue: Clue) -> str:
    """Return the number of the rank that a launcher names in a line; empty if it names none."""
    found = TASK.search(clue.line.text)
    return next((found[name] for name in RANKS if found[name]), "") if found else ""


def _of_first_rank(found: list[tuple[Clue, str]], endings: list[Clue]) -> tuple[Clue, str]:
    """Return the first report; of ranks that failed together, the rank that the launcher names first."""
    first = found[0]
    named = next((match for clue in endings if (match := TASK.search(clue.line.text))), None)
    if named is None or not named["task"] or first[0].line.task in {"", named["task"]}:
        return first
    own = [pair for pair in found if pair[0].line.task == named["task"]]
    soon = [pair for pair in own if pair[0].line.number <= first[0].line.number + 40]
    same = [pair for pair in soon if _kind(pair[0]) != _kind(first[0])]
    return same[0] if same and first[0].strength <= same[0][0].strength and _is_wait(first[0]) else first


def is_stopped(text: str) -> bool:
    """Return whether a launcher reports a rank that it stopped itself."""
    return _STOPPED.search(text) is not None


def waited_for_ranks(clue: Clue) -> bool:
    """Return whether a line says that a rank waited for others until a time limit."""
    together = clue.class_ in {"rendezvous", "coordination", "nccl-or-rccl"}
    return together and _TIMED_OUT.search(clue.line.text) is not None


def _is_wait(clue: Clue) -> bool:
    """Return whether a line says that a rank waited for others."""
    return clue.class_ in {"rendezvous", "coordination"}


def _kind(clue: Clue) -> str:
    return strip_label(clue.line.text)[:40]


def _is_late(clue: Clue, endings: list[Clue]) -> bool:
    """Return whether the launcher stopped a rank, after another one failed."""
    if not _PASSIVE.search(clue.line.text):
        return False
    first = next((ending for ending in endings if TASK.search(ending.line.text)), clue)
    by_user = any(_JOB_CANCELLED in one.line.text for one in endings if one.position < clue.position)
    return clue is not first or by_user or _was_stopped(clue, endings)


def _was_stopped(clue: Clue, endings: list[Clue]) -> bool:
    """Return whether Slurm cancelled the step before this line, because a rank exited with an error.

    Slurm reports killed ranks first. If a user cancels, Slurm cancels the job too.
    """
    cancelled = any(_CANCELLED.search(one.line.text) for one in endings if one.position < clue.position)
    texts = [one.line.text for one in endings]
    return cancelled and any(map(_EXITED.search, texts)) and not any(_JOB_CANCELLED in text for text in texts)


def _failed_rank(output: Output, clue: Clue, endings: list[Clue]) -> tuple[str, str]:
    """Return the rank that failed first and its node, if the lines name them."""
    rank, node = clue.line.task, ""
    if _CANCELLED.search(clue.line.text):
        return "", ""
    if absent := _ABSENT.search(clue.line.text):
        return next(number for number in absent.groups() if number), node
    for one in [clue, *endings]:
        found = TASK.search(one.line.text)
        if found is None:
            continue
        number = next((found[name] for name in RANKS if found[name]), "")
        number = rank_of_process(output, one) or number
        if rank in {"", number}:
            return number, found["node"] or ""
    named = _NODE.search(clue.line.text)
    return rank, node or (named[1] if named else "")


def _exit_reports(endings: list[Clue]) -> tuple[str, ...]:
    """Return the lines in which launchers report the exit of ranks."""
    return tuple(dict.fromkeys(clue.line.citation for clue in endings))[:3]
