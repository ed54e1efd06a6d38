"""Distinguish errors that a program survived from the error that stopped the program."""

import re
from collections.abc import Sequence

from toolkit.engine.logs.clues import Clue, strip_label
from toolkit.engine.logs.joblines import Output

_AFTER = 200
"""Number of lines after an error in which progress lines show that a process survived."""

_PROGRESS = re.compile(
    r"(?i)^(?:\W{0,3}(?:train|val|test)\w{0,6}\W{0,3})?(?:epoch|step|iter(?:ation)?|batch)s?\b\W{0,3}\d.{0,200}\d"
    r"|\b(?:loss|acc(?:uracy)?)\b\W{1,4}\d{1,4}\.\d|\d{1,3}%\||\d(?:it|s)/(?:s|it)\b"
    r"|\d{1,6}(?:/\d{1,6})? \[=+>?\.*\]"
)
"""A pattern for a progress line, which a program writes while it computes."""

_ENOUGH = 2
"""Number of progress lines that show that a process survived."""

_SLURM = ("slurmstepd", "srun:", "sacct:")

_BLOCK = 15
"""Maximum number of lines in a message that Open MPI writes between two lines of dashes."""

_RULE = re.compile(r"^-{20,}$")
_WARNS = re.compile(
    r"(?i)^\W{0,4}(?:\[[^\]]{1,40}\]\W{1,3})?warning\b|this is (?:only )?a warning|lower\s+performance"
    r"|will\s+be\s+ignored|will\s+continue\s+to\s+run|another\s+transport\s+will"
)
_SET_UP = (
    (
        re.compile(r"^\S{1,200}: (?:line )?\d{1,6}: .{1,300}: No such file or directory$"),
        {"package", "file-system-or-quota", "program-start"},
    ),
    (
        re.compile(r"Lmod has detected the following error|CommandNotFoundError: Your shell has not been"),
        {"package", "loader", "program-start"},
    ),
    (re.compile(r"couldn't chdir to .{1,300}: going to "), {"file-system-or-quota", "program-start"}),
)
"""Patterns for errors after which a job continues, each with the fault classes of errors that it
may cause.
"""

_IGNORED = "Exception ignored in"
"""Text that Python prints before the traceback of an ignored exception, such as an exception
in ``__del__``.
"""


def is_ignored(output: Output, head: int) -> bool:
    """Return whether Python ignored the exception of the traceback that starts at position ``head``."""
    line = output.line(head)
    before = [strip_label(one.text) for _, one in output.before(head, 4) if one.task == line.task]
    return bool(before) and before[-1].startswith(_IGNORED)


def is_passed(clue: Clue, later: Sequence[Clue]) -> bool:
    """Return whether an error occurred before the job started its program, and the job continued and later
    failed with another fault.
    """
    text = strip_label(clue.line.text)
    follows = next((classes for pattern, classes in _SET_UP if pattern.search(text)), None)
    if follows is None:
        return False
    return any(one.position > clue.position and one.class_ not in follows for one in later)


def only_warns(output: Output, clue: Clue) -> bool:
    """Return whether a line is part of a message between two lines of dashes, and the message is only a
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
            return _WARNS.search(" ".join(block)) is not None
        block.append(text)
    return False


def survived_until(output: Output, clue: Clue) -> int | None:
    """Return the position of the last line that shows that a process survived its error; ``None`` if no line
    does.

    A few progress lines do not show that the process survived. Without rank labels, such lines may be from
    another rank, which the launcher has not stopped yet.
    """
    seen = list[int]()
    slurm = clue.class_ == "scheduler-start" and clue.line.text.startswith("slurmstepd")
    for position, line in output.places_after(clue.position, _AFTER):
        text = strip_label(line.text).strip()
        if _PROGRESS.search(text) or (slurm and text and not text.startswith(_SLURM)):
            seen.append(position)
    return seen[-1] if len(seen) >= (1 if slurm else _ENOUGH) else None
