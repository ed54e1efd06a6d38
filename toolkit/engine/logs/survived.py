"""Distinguish errors that a program survived from the error that stopped the program."""

import re
from collections.abc import Sequence
from itertools import islice

from toolkit.engine.logs.clues import Clue, strip_label
from toolkit.engine.logs.joblines import Output
from toolkit.engine.logs.line_class import is_harmless

_AFTER = 200
"""Progress lines within this number of lines after an error show that a process survived the error."""

_PROGRESS = re.compile(
    r"(?i)^(?:\W{0,3}(?:train|val|test)\w{0,6}\W{0,3})?(?:epoch|step|iter(?:ation)?|batch)s?\b\W{0,3}\d.{0,200}\d"
    r"|\b(?:loss|acc(?:uracy)?)\b\W{1,4}\d{1,4}\.\d|\d{1,3}%\||\d(?:it|s)/(?:s|it)\b"
    r"|\d{1,6}(?:/\d{1,6})? \[=+>?\.*\]"
)
"""A pattern for a progress line, which a program writes while it computes."""

_ENOUGH = 2
"""If at least this number of progress lines follows an error, toolkit assumes that a process survived it."""

_SLURM = ("slurmstepd", "srun:", "sacct:")

_BLOCK = 15
"""Number of lines before and after an error in which toolkit looks for the lines of dashes around a message
of Open MPI.
"""

_RULE = re.compile(r"^-{20,}$")
WARNS = re.compile(
    r"(?i)^\W{0,4}(?:\[[^\]]{1,40}\]\W{1,3})?warning\b|this is (?:only )?a warning|lower\s+performance"
    r"|will\s+be\s+ignored|will\s+continue\s+to\s+run|another\s+transport\s+will"
)
"""A pattern for words with which Open MPI says that a message is only a warning."""

_SET_UP = (
    (
        re.compile(r"^\S{1,200}: (?:line )?\d{1,6}: .{1,300}: No such file or directory$"),
        {"package", "file-system-or-quota", "program-start", "user-configuration"},
    ),
    (
        re.compile(r"^cmd\w{3,12}\.c\(\d+\):ERROR:\d+: |^Module\w{1,20}\.c\(\d+\):ERROR:\d+: "),
        {"package", "loader", "program-start"},
    ),
    (
        re.compile(r"Lmod has detected the following error|CommandNotFoundError: Your shell has not been"),
        {"package", "loader", "program-start"},
    ),
    (re.compile(r"^(?:rm|rmdir): .{1,400}: [A-Z]"), set[str]()),
    (
        re.compile(r"couldn't chdir to .{1,300}: going to "),
        {"file-system-or-quota", "program-start", "user-configuration"},
    ),
)
"""Patterns for errors of a job's setup, such as a failed ``module load``, after which the job continues.
Each pattern has a set of fault classes: later errors of these classes may be consequences of the setup error.
"""

_COPES = re.compile(
    r"(?i)(?<!not )(?<!before )(?<!without )(?<!consider )\b(?:fall(?:s|ing) back|going on|goes on"
    r"|continu(?:es|ing)|carrying on|proceeding|retrying|trying (?:again|another|the next)|skipping"
    r"|ignoring|recovered)\b"
    r"|[,;] using \w"
)
"""A pattern for words with which a program says how it continues after an error."""

_BAD_END = re.compile(
    r"(?i)\b(?:giv(?:e|es|ing)|gave) up|\b(?:fail\w*|errors?|abort\w*|exit\w*|stop\w*|quit\w*|terminat\w*"
    r"|kill\w*|exception|cannot|unable|could(?:n.t| not)|can.t|lost|dead|died|timed out|refused"
    r"|denied|invalid)\b"
)
"""A pattern for words of failure. A line with such a word does not show that a program continues. In the last
line of an output, such a word shows that the program failed.
"""

_TIMED = r"^\W{0,2}(?:\d{4}-)?\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d\S{0,8}\W{1,4}(?:\[?\w[\w.]{0,40}\]?\W{1,3}){0,2}"
_LOGGED = re.compile(_TIMED + r"ERROR\b")
_INFORMS = re.compile(_TIMED + r"INFO\b")
"""Patterns for log lines that start with date and time and have the level ``ERROR`` or ``INFO``."""

_NOT_NEEDED = re.compile(
    r"\bmodule: command not found$|^(?:rm|rmdir): .{1,300}: No such file or directory$"
    r"|^mkdir: .{1,300}: File exists$"
)
"""A pattern for errors of shell commands after which a script often continues until it finishes."""

_FINISHED = re.compile(
    r"(?i)^(?:.{0,120}[\s,;:])?(?<!not )(?:finished|done|completed?|succe(?:ss|eded|ssfully))[.!]{0,3}$"
)
"""A pattern for a line in which a program says that it finished."""

_COPED = 3
"""Number of lines after an error in which toolkit looks for the first non-empty line. This line may say how
the program continues.
"""

_LAST = 5
"""Number of last lines of the output in which toolkit looks for the message that the program finished."""

_IGNORED = ("Exception ignored in", "--- Logging error ---")
"""Texts that Python prints before the traceback of an ignored exception. Python ignores exceptions in
``__del__`` and in logging handlers, for example.
"""


def is_progress(text: str) -> bool:
    """Return whether a line is a progress line, which a program writes while it computes."""
    return _PROGRESS.search(text) is not None


def is_ignored(output: Output, head: int) -> bool:
    """Return whether Python ignored the exception of the traceback that starts at position ``head``."""
    line = output.line(head)
    before = [strip_label(one.text) for _, one in output.before(head, 4) if one.task == line.task]
    return bool(before) and before[-1].startswith(_IGNORED)


def is_passed(clue: Clue, clues: Sequence[Clue]) -> bool:
    """Return whether a line is an error of the job's setup, and a later line in ``clues`` reports a fault
    that the setup error cannot cause. If so, the job survived the setup error.
    """
    text = strip_label(clue.line.text)
    follows = next((classes for pattern, classes in _SET_UP if pattern.search(text)), None)
    if follows is None:
        return False
    return any(one.position > clue.position and one.class_ not in follows for one in clues)


def only_warns(output: Output, clue: Clue) -> bool:
    """Return whether a line is part of a message of Open MPI, between two lines of dashes, that is only a
    warning.
    """
    block = list[str]()
    for _, line in reversed(output.before(clue.position, _BLOCK)):
        if _RULE.match(text := strip_label(line.text).strip()):
            break
        block.insert(0, text)
    else:
        return False
    block.append(strip_label(clue.line.text).strip())
    for line in output.following(clue.position, _BLOCK):
        if _RULE.match(text := strip_label(line.text).strip()):
            return WARNS.search(" ".join(block)) is not None
        block.append(text)
    return False


def survived_until(output: Output, clue: Clue) -> int | None:
    """Return the position of the last line that shows that a process survived its error; ``None`` if the
    output does not show this.

    At least two progress lines must follow the error. Without rank labels, a single progress line may be from
    another rank, which the launcher has not stopped yet. After an error of slurmstepd, one line that is not
    from Slurm is enough.
    """
    seen = list[int]()
    slurm = _is_of_slurmstepd(clue)
    for position, line in output.places_after(clue.position, _AFTER):
        text = strip_label(line.text).strip()
        if is_progress(text) or (slurm and text and not text.startswith(_SLURM)):
            seen.append(position)
    return seen[-1] if len(seen) >= (1 if slurm else _ENOUGH) else None


def is_like(error: Clue, other_error: Clue) -> bool:
    """Return whether the job may have survived the error ``other_error`` if the job survived ``error``.

    If ``error`` is an error of slurmstepd, the result is true only for messages of Slurm, because an error
    of the program itself may still be fatal.
    """
    return not _is_of_slurmstepd(error) or other_error.line.text.startswith(_SLURM)


def _is_of_slurmstepd(clue: Clue) -> bool:
    """Return whether a line is an error of slurmstepd, the program of Slurm that starts and watches a job's
    ranks on a node.
    """
    return clue.class_ == "scheduler-start" and clue.line.text.startswith("slurmstepd")


def overcome_errors(output: Output, clue: Clue, errors: Sequence[Clue]) -> set[int]:
    """Return the positions of an error and of the later errors of the same class, if the job survived all of
    these errors; otherwise, return an empty set.

    A job survives an error if the program says how it continues. It survives an error of a command such as
    ``rm`` if the program says that it finished. It survives a log line of level ``ERROR`` if a log line of
    level ``INFO`` says that the program finished. The last line of the output must report no failure.
    ``errors`` are all lines that may report a failure.
    """
    last = max((one.position for one in (clue, *errors)), default=-1)
    end = [(at, one.text) for at, one in output.before(output.pages[-1].end, _LAST)]
    end = [(at, text) for at, text in end if strip_label(text).strip() and at > last]
    if not end or _is_bad_end(strip_label(end[-1][1])):
        return set()
    finished = [text for _, text in end if _FINISHED.search(strip_label(text).strip())]

    def copes(error: Clue) -> bool:
        after = islice(output.places_after(error.position, _COPED), _COPED)
        said = next(((at, text) for at, one in after if (text := strip_label(one.text).strip())), None)
        if said and said[0] < end[-1][0] and _COPES.search(said[1]) and not _BAD_END.search(said[1]):
            return True
        if _LOGGED.match(error.line.text):
            return any(map(_INFORMS.match, finished))
        return bool(finished) and _NOT_NEEDED.search(error.line.text) is not None

    again = [one for one in errors if one.position > clue.position and one.class_ == clue.class_]
    return {clue.position, *(one.position for one in again)} if all(map(copes, (clue, *again))) else set()


def _is_bad_end(text: str) -> bool:
    return _BAD_END.search(text) is not None and not is_harmless(text)
