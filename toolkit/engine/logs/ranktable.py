"""Read torchrun's table of failed ranks."""

import re

from toolkit.engine.logs.clues import Clue
from toolkit.engine.logs.joblines import Output

_OBSERVED = "Root Cause (first observed failure)"
"""Heading of the last part, which names the rank that failed first; the parts above it name later ones."""

_ROW = re.compile(r"^\s*(?:rank|time|host|exitcode|error_file|traceback)\s*: ")
_RANK = re.compile(r"^\s*rank\s+: (\d+) \(local_rank: \d+\)")
_PROCESS = re.compile(r"local_rank: \d+ \((pid: \d+)\) of binary")
_ROWS = 6
_TABLE = 200
"""Number of lines after the report of a process that may have the table of its node."""


def without_later_failures(endings: list[Clue]) -> list[Clue]:
    """Return the ends of ranks without those that the table names above the first observed failure."""
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
    """Return the rank of a row of the table; empty without one."""
    if not _ROW.search(clue.line.text):
        return ""
    before = reversed(output.before(clue.position, _ROWS))
    lines = (line.text for _, line in before if line.task == clue.line.task)
    return next((found[1] for text in lines if (found := _RANK.search(text))), "")


def rank_of_process(output: Output, clue: Clue) -> str:
    """Return the rank that the table has for a process which torchrun reports with its local rank."""
    found = _PROCESS.search(clue.line.text)
    if found is None:
        return ""
    for position, line in output.places_after(clue.position, _TABLE):
        if f"({found[1]})" in line.text and _ROW.search(line.text):
            return rank_in_table(output, Clue(position, line, clue.class_, clue.strength, clue.role))
    return ""
