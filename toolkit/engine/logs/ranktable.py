"""Read the rank of a failed process from torchrun's table, or from a line of the program's logger."""

import re
from itertools import islice

from toolkit.engine.logs.clues import Clue, strip_label
from toolkit.engine.logs.joblines import Output
from toolkit.engine.logs.lastwords import PROGRESS

_OBSERVED = "Root Cause (first observed failure)"
"""Heading of the last part of torchrun's table, which names the rank that failed first. The earlier parts of
the table list later failures.
"""

_ROW = re.compile(r"^\s*(?:rank|time|host|exitcode|error_file|traceback)\s*: ")
_RANK = re.compile(r"^\s*rank\s+: (\d+) \(local_rank: \d+\)")
_PROCESS = re.compile(r"local_rank: \d+ \((pid: \d+)\) of binary")
_SAYS = re.compile(
    r"^-- Process (\d{1,5}) terminated with the following error:"
    r"|^(?:[Rr]ank|[Pp]roc(?:ess)?|[Ww]orker) (\d{1,5}): "
    r"|^.{0,80}?[\[(|] ?(?:[Rr]ank|[Pp]roc(?:ess)?|[Ww]orker)[ :=#]?(\d{1,5})(?:/\d{1,5})? ?[\])|]"
)
"""A pattern for the line that ``torch.multiprocessing.spawn`` prints before the traceback of a process, and
for the rank that a program's logger writes before its message.
"""

_FIELD = re.compile(r'^\{.{0,600}?"(?:global_)?rank": ?"?(\d{1,5})\b|^\w{1,20}=.{0,400}? rank="?(\d{1,5})\b')
"""A pattern for the rank in a structured log line."""

_ROWS = 6
_MOST = 400
"""Maximum number of lines of a traceback."""

_TABLE = 200
"""Maximum number of lines between torchrun's report of a failed process and torchrun's table."""


def without_later_failures(endings: list[Clue]) -> list[Clue]:
    """Return the reports of exited ranks, without failures that came after the first failure.

    torchrun's table lists the first failure last, so the function removes the table's rows above this
    failure.
    """
    kept, observed = list[Clue](), set[str]()
    for clue in reversed(endings):
        text, task = clue.line.text, clue.line.task
        if task in observed and _ROW.search(text):
            continue
        observed.discard(task)
        if _OBSERVED in text:
            observed.add(task)
        kept.append(clue)
    return kept[::-1]


def rank_in_table(output: Output, clue: Clue) -> str:
    """Return the rank of the process that a row of torchrun's table describes; empty if the line is not a
    row of the table.
    """
    if not _ROW.search(clue.line.text):
        return ""
    before = reversed(output.before(clue.position, _ROWS))
    lines = (line.text for _, line in before if line.task == clue.line.task)
    return next((found[1] for text in lines if (found := _RANK.search(text))), "")


def rank_in_words(output: Output, clue: Clue, first_number: int) -> str:
    """Return the rank that a program's logger names in the line ``clue``, or in the line before line number
    ``first_number``; empty if neither line names a rank.

    If ``clue`` is the end of a traceback, ``first_number`` is the line number of the traceback's first line.
    Otherwise, ``first_number`` is the line number of ``clue``.
    """
    before = (line for _, line in reversed(output.before(clue.position, _MOST)) if line.number < first_number)
    texts = (clue.line.tag + clue.line.text, *(line.text for line in islice(before, 1)))
    fields = _FIELD.search(clue.line.text)
    found = next((found for text in texts if (found := _SAYS.search(text))), fields)
    return next((number for number in found.groups() if number), "") if found else ""


def words_of_rank(output: Output, ending: Clue, rank: str) -> Clue | None:
    """Return the last line in which the program names the failed rank, before the launcher reports the exit
    of the rank. The result is ``None`` if no line names the rank, or if the last such line reports progress.
    """
    for position, line in reversed(output.before(ending.position, _TABLE)):
        said = _SAYS.search(line.text)
        if said and rank in said.groups():
            progress = PROGRESS.search(strip_label(line.text))
            return None if progress else Clue(position, line, "unknown-error", 2, "cause")
    return None


def rank_of_process(output: Output, clue: Clue) -> str:
    """If the line ``clue`` names a process by its local rank and process ID, return the rank of the process
    in torchrun's table; empty for another line, or if the table does not follow.
    """
    found = _PROCESS.search(clue.line.text)
    if found is None:
        return ""
    for position, line in output.places_after(clue.position, _TABLE):
        if f"({found[1]})" in line.text and _ROW.search(line.text):
            return rank_in_table(output, Clue(position, line, clue.class_, clue.strength, clue.role))
    return ""
