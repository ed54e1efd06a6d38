"""Find the lines of job output that may report a fault, and the fault class of each line."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from toolkit.engine.logs.joblines import Line, Output
from toolkit.engine.logs.line_class import classify
from toolkit.engine.logs.logsearch import MOST_SUSPECTS
from toolkit.engine.logs.records import read_record
from toolkit.engine.logs.sourcecode import is_code, raises
from toolkit.knowledge.signatures import Role
from toolkit.model.finding import Retry

HEAD = "Traceback (most recent call last)"
"""The first line of a Python traceback."""

_FRAME = re.compile(r'^\s*File "[^"]{1,300}", line \d+')
"""A pattern for a frame of a Python traceback; the next line may have the frame's source code."""

_LABELLED_FRAME = re.compile(r'^(?P<label>\S.{0,80}?[\]:|)}>] ?)(?P<indent> +)File "[^"]{1,300}", line \d+')
"""A pattern for a frame after a label that toolkit does not know, such as the host name that pdsh prints."""

_LABELLED_ERROR = re.compile(
    r"^(?P<label>\S.{0,80}?[\]:|)}>] ?)"
    r"(?:[a-z_]\w{0,60}\.){0,9}[A-Z]\w{0,60}(?:Error|Exception|Exit|Interrupt)(?::|$)"
)
"""A pattern for an exception after a label that toolkit does not know."""

_LABEL_ENDS = re.compile(r"^\S.{0,80}?[\]:|)}>] {3,}\S")
"""A pattern for a label and indented text."""

_NEAR = 8
"""toolkit looks for a traceback frame in this number of lines before a line of source code or an exception.
Other ranks may write lines between the frame and its code.
"""

_BEFORE = re.compile(
    r"^(?:[#>] |│ (?!.*│ *$))?(?: *\d+: ?)?"
    r"(?:\[(?:rank|default)?\d+\]: ?|\[[^\]\s]{0,60}\d+\]<std(?:out|err)>: ?)?"
    r"(?:#\d{1,4} (?:\d{1,5}\.\d{1,3} +)?|\d{1,5}\.\d{2,3} (?=[A-Z] ?:|[A-Z][a-z]|error|fatal))?"
    r"(?:\[[\w.-]{1,60}:\d{1,5}\]: ?(?=\S))?"
    r"(?:\[\d{1,6}\](?: (?! )|$))?"
    r"(?:\([^()]{0,60}pid=\d+[^()]{0,40}\) )?"
    r"(?:(?:ERROR|WARNING|INFO) +(?=[\[(\d]))?"
    r"(?:\[?(?:\d{4}[-/])?\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d[^\]\s]{0,12}\]?"
    r"(?: TP\d+\]| (?!\[(?:WARN|INFO|DEBUG|NOTICE))\S{1,20}\])?[ :,-]{0,3})?"
    r"(?:\[[\w./]{1,60}\.py:\d+\] )?(?: *what\(\): +)?"
)
"""A pattern for the text before a program's message, such as a rank's label, a build step's number, the
process, level, time and file.
"""

_RECORD = re.compile(r'^\{"(?:\w{1,20}": ?"[^"]{0,80}", ?"){0,6}(?:log|data|msg|message|line)": ?"')
"""A pattern for the start of a JSON line that a logger or container engine writes, up to the program's
message.
"""

_DAEMON = re.compile(
    r"^\[\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\] (?:\[[\w.+]{1,30}\] )?(?=(?:error|fatal): )"
)
"""A pattern for the text before an error in a log of Slurm's daemons: the time and the step."""

_SYSLOG = re.compile(
    r"^[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \S{1,80} (slurmd|slurmctld|slurmstepd)\[\d{1,8}\]: "
)
"""A pattern for the text before a message of Slurm's daemons in the system's log."""

_VERBOSE = re.compile(r"^(FATAL|ERROR|ABORT|WARNING|INFO|VERBOSE|DEBUG) +\[U=\d+,P=\d+\] *\w{1,60}\(\) +")
"""A pattern for the text before a message of Apptainer or Singularity with ``--debug``: level, user, process,
function.
"""


_LOGRUS = re.compile(
    r'^(?:(?:time="?[^" ]{10,40}"? )?level=(?P<name>[A-Za-z]{4,7}) (?:msg="?)?'
    r"|(?P<short>[A-Z]{4})\[\d{4,}\] |\[conmon:e\]: )"
)
"""A pattern for the text before a message of podman, buildah, skopeo and other Go programs that log with
logrus: time and level, or level and seconds. The label ``conmon`` is from the program that monitors podman's
containers.
"""

_LOGRUS_STARTS = frozenset("tlTDIWEFP[")
_LOGRUS_LEVELS = {
    "TRAC": "DEBUG",
    "DEBU": "DEBUG",
    "INFO": "INFO",
    "WARN": "WARNING",
    "ERRO": "ERRO",
    "FATA": "FATAL",
    "PANI": "FATAL",
}

_BARE = re.compile(r"^(?:\w{1,60}\.){0,8}[A-Z]\w{0,60}(?:Error|Exception):?$")
"""A pattern for a line that has only the name of an exception. Workflow managers print such a line without a
traceback, and the message of the exception on the next line.
"""


_INTRODUCES = re.compile(
    r"(?i)^\W{0,20}(?:(?:fatal )?error in .{1,200}:"
    r"|(?:\w+ ){0,3}(?:error|exception|failure|problem)s?\b ?:? ?(?:\([\w .-]{1,40}\))?\W{0,20})$"
    r"|^-+ .{0,60}\bCalled CmiAbort -+$|^\{?\W?Error using \S{1,120}(?: \(line \d+\))?$"
)
"""A pattern for a line such as ``Fatal error:``, whose message is on the next line. R, MATLAB, GROMACS,
OpenFOAM and Charm++ print such lines.
"""

_WRAPPED = re.compile(
    r"^(?:mpirun|mpiexec|prterun) (?:noticed|detected|was unable|has exited)\b.{0,300}[^.:!]$"
)
"""A pattern for the first line of a sentence from Open MPI's launcher that continues on the next line."""


_RETRY = re.compile(
    r"(?i)\b(?:will retry|will be retried|retrying|trying again|next attempt) (?:in|after) \d"
)
"""A pattern for a message in which a program says that it will retry an operation."""


_STACK = "error stack:"
_LEVELS = re.compile(r"^(?:\(unknown\)|\w{2,60})\(\d{0,6}\)\.{0,60}: ?(.{0,400})")
"""A pattern for a level of MPICH's error stack. The outermost level comes first; the last level has the
reason.
"""

_MOST_LEVELS = 12

_RULES = ("--", "==", "**", "##", "~~", "/*", "srun: ", "slurmstepd: ")
"""The first characters of separator lines and of Slurm's lines, which contain no message of the program."""

_LISTED = "tasks are unhealthy (stopped sending heartbeats):"
"""The end of a line after which XLA prints task numbers on the next line."""


@dataclass(frozen=True, slots=True)
class Clue:
    """A line that may report a fault. ``position`` is the number of bytes in the output before the line.

    The row of ``faultlines.toml`` that matches the line gives the fault class ``class_``, ``role``, ``retry``
    and ``strength``. ``strength`` is from 2 (general words of failure) to 5 (the line names the fault). For
    the first line of a traceback, ``class_`` is empty and ``strength`` is 0.
    """

    position: int
    line: Line
    class_: str
    strength: int
    role: Role
    retry: Retry | None = None


Cause = tuple[Clue, str]
"""A line that reports a cause, and a frame (file, line and function) of its traceback; the frame is empty
without a traceback.
"""


def strip_label(text: str) -> str:
    """Return the text of a line without the text before the program's message, such as rank, process and
    time. For a log line with a level or from a Slurm daemon, the result usually begins with ``LEVEL:`` or
    the daemon's name.
    """
    if text.startswith("{"):
        if words := _plain_record(text):
            return words
        record = _RECORD.match(text)
        text = text[record.end() :] if record else text
    if verbose := _VERBOSE.match(text):
        return f"{verbose[1]}:   {text[verbose.end() :]}"
    if daemon := _DAEMON.match(text):
        return f"slurmd: {text[daemon.end() :]}"
    if syslog := _SYSLOG.match(text):
        return f"{syslog[1]}: {text[syslog.end() :]}"
    found = _BEFORE.match(text)
    text = text[found.end() :] if found else text
    if words := _plain_record(text):
        return words
    logrus = _LOGRUS.match(text) if text[:1] in _LOGRUS_STARTS else None
    level = (logrus["short"] or logrus["name"] or "ERRO")[:4].upper() if logrus else ""
    if logrus and level in _LOGRUS_LEVELS:
        words = text[logrus.end() :].removesuffix('"')
        return f"{_LOGRUS_LEVELS[level]}: {words}"
    return text


def _plain_record(text: str) -> str | None:
    """Return a structured log line as plain text, ``LEVEL: MESSAGE``; ``None`` for other lines.

    If the line reports an error and a row of ``faultlines.toml`` identifies the fault in its message, the
    result is only the message. Otherwise, if a row identifies the fault in the reason of the error, the
    result is only the reason.
    """
    record = read_record(text)
    if record is None or record.level != "error":
        return f"{record.level}: {record.message}" if record else None
    for words in (record.message, record.reason):
        row = classify(words)
        if row is not None and row.strength >= 3 and row.class_ != "unknown-error":
            return words
    more = f": {record.reason}" if record.reason and record.reason not in record.message else ""
    return f"error: {record.message}{more}"


def is_record(line: Line) -> bool:
    """Return whether a line is a structured log line, such as a JSON object with a level and a message."""
    label = _BEFORE.match(line.text)
    return read_record(line.text[label.end() :] if label else line.text) is not None


def is_head(clue: Clue) -> bool:
    """Return whether a line is the first line of a traceback."""
    return not clue.class_ and HEAD in clue.line.text


def clues(output: Output, suspects: Sequence[int]) -> list[Clue]:
    """Return the lines that may report a fault, in the order of the output.

    Args:
        output: the job output.
        suspects: the sorted positions of lines that contain a stem (a part of a word about faults, such as
            ``fail``). If there are more than two times ``MOST_SUSPECTS`` lines, this function reads only the
            first and the last ``MOST_SUSPECTS`` lines.
    """
    most = MOST_SUSPECTS
    some = (*suspects[:most], *suspects[-most:]) if len(suspects) > 2 * most else suspects
    return list(_classify_lines(output, some))


def _classify_lines(output: Output, positions: Iterable[int]) -> Iterator[Clue]:
    for position, line in output.lines_at(positions):
        if HEAD in line.text and HEAD in strip_label(line.text):
            yield Clue(position, line, "", 0, "cause")
            continue
        whole = _with_message(output, position, _without_label(output, position, line))
        row = classify(strip_label(whole.text))
        if row is None or _is_source(output, position, line) or raises(line.text):
            continue
        if row.strength <= 2 and is_code(strip_label(whole.text)):
            continue
        if not (row.role == "cause" and _is_retried(output, position)):
            yield Clue(position, whole, row.class_, row.strength, row.role, row.retry)


def _without_label(output: Output, position: int, line: Line) -> Line:
    """If a line is an exception below a frame with the same label, return a copy of the line whose text is
    only the exception; otherwise return the line unchanged.
    """
    found = _LABELLED_ERROR.match(line.text)
    if found is None:
        return line
    near = (_LABELLED_FRAME.match(one.text) for _, one in output.before(position, _NEAR))
    if not any(frame["label"] == found["label"] for frame in near if frame):
        return line
    label = found["label"]
    return Line(line.number, line.task, line.text.removeprefix(label), line.tag + label)


def _is_source(output: Output, position: int, line: Line) -> bool:
    """Return whether a line is source code next to a frame of a traceback, even if the output lacks the first
    line of the traceback.
    """
    text = strip_label(line.text)
    indented = text.startswith((" ", "\t"))
    if not indented and _LABEL_ENDS.search(text) is None:
        return False
    before = [one for _, one in output.before(position, _NEAR) if one.task == line.task]
    near = [one.text for one in (*before[-1:], *output.following(position, 1))]
    if not indented:
        return any(_is_code_of(frame, line.text) for one in near if (frame := _LABELLED_FRAME.match(one)))
    frames = [words for one in near if _FRAME.match(words := strip_label(one))]
    return any(_indent(one) <= _indent(text) for one in frames) and not _FRAME.match(text)


def _is_code_of(frame: re.Match[str], text: str) -> bool:
    """Return whether a line has the label of a frame, and is source code that is indented below the frame."""
    label = frame["label"]
    words = text.removeprefix(label)
    deeper = _indent(words) > len(frame["indent"])
    return text.startswith(label) and deeper and not _FRAME.match(words)


def _indent(text: str) -> int:
    return len(text) - len(text.lstrip())


def _is_retried(output: Output, position: int) -> bool:
    """Return whether the line after ``position`` says that the program will retry the failed operation."""
    return _RETRY.search(output.text_after(position)) is not None


def _with_message(output: Output, position: int, line: Line) -> Line:
    """Return a line, with the next line's text appended if the message of the fault is on the next line."""
    if line.text.endswith(_STACK):
        words = _reason(output, position)
        return Line(line.number, line.task, f"{line.text} {words}".rstrip(), line.tag)
    text = strip_label(line.text).strip()
    if not any(form.match(text) for form in (_BARE, _INTRODUCES, _WRAPPED)) and not text.endswith(_LISTED):
        return line
    near = [strip_label(after.text).strip() for after in output.following(position, 2)]
    words = next((words for words in near if words and not words.startswith(_RULES)), "")
    if HEAD in words:
        return line
    if words.endswith(_STACK):
        words = f"{words} {_reason(output, position)}"
    return Line(line.number, line.task, f"{line.text} {words}".rstrip(), line.tag)


def _reason(output: Output, position: int) -> str:
    """Return the reason at the end of the MPICH error stack that starts at ``position``; empty if no stack
    follows.
    """
    reason = ""
    for line in output.following(position, _MOST_LEVELS):
        level = _LEVELS.match(strip_label(line.text))
        if level is None and not reason and strip_label(line.text).endswith(_STACK):
            continue
        if level is None:
            break
        reason = strip_label(line.text).strip() if level[1].strip() else reason
    return reason
