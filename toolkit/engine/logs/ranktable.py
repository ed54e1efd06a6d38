"""Read torchrun's table of failed ranks."""

import re

from toolkit.engine.logs.clues import Clue
from toolkit.engine.logs.joblines import Output

_OBSERVED = "Root Cause (first observed failure)"
"""Heading of the last part of torchrun's table, which has the rank that failed first. The parts above have
later failures.
"""

_ROW = re.compile(r"^\s*(?:rank|time|host|exitcode|error_file|traceback)\s*: ")
_RANK = re.compile(r"^\s*rank\s+: (\d+) \(local_rank: \d+\)")
_PROCESS = re.compile(r"local_rank: \d+ \((pid: \d+)\) of binary")
_ROWS = 6
_TABLE = 200
"""Maximum number of lines between torchrun's report of a process and torchrun's table."""


def without_later_failures(endings: list[Clue]) -> list[Clue]:
    """Return the reports of exited ranks, without the rows above the first observed failure in torchrun's
    table.
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
    """Return the rank in a row of torchrun's table; empty if the line is not a row of the table."""
    if not _ROW.search(clue.line.text):
        return ""
    before = reversed(output.before(clue.position, _ROWS))
    lines = (line.text for _, line in before if line.task == clue.line.task)
    return next((found[1] for text in lines if (found := _RANK.search(text))), "")


def rank_of_process(output: Output, clue: Clue) -> str:
    """If torchrun reports a process by its local rank and pid, return the rank of the process in torchrun's
    table.
    """
    found = _PROCESS.search(clue.line.text)
    if found is None:
        return ""
    for position, line in output.places_after(clue.position, _TABLE):
        if f"({found[1]})" in line.text and _ROW.search(line.text):
            return rank_in_table(output, Clue(position, line, clue.class_, clue.strength, clue.role))
    return ""
