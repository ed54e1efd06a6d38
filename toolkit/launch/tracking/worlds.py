"""Find signs in a job's output that each rank runs alone and does not communicate with the other ranks."""

import re

from toolkit.model.job import JobRecord

_WORLDS = re.compile(
    r"""\b(?:rank|process|proc|task|worker)[ \t]*(?:\#|=|:|number|id)?[ \t]*(\d{1,6})
        [ \t]*(?:/|of|out[ \t]of)[ \t]*(\d{1,6})\b
    |"rank":[ \t]*(\d{1,6}),[ \t]*"size":[ \t]*(\d{1,6})\b
    |\brank[ \t]*[=:][ \t]*(\d{1,6})[,; \t]+(?:world[ _-]?)?size[ \t]*[=:][ \t]*(\d{1,6})\b""",
    re.IGNORECASE | re.VERBOSE,
)
"""A pattern for a rank and its world size.

Examples are ``Hello from rank 0 of 1``, ``process 0/2``, ``{"rank": 0, "size": 2`` and ``rank=0 size=2``.
"""
_EPOCH = re.compile(
    r"^(\d{1,6}): (.{0,20}\bepoch\b[ \t:=\[]*\d{1,6}[ \t]*(?:/[ \t]*\d{1,6})?)", re.IGNORECASE
)
"""A pattern for a line such as ``1: Epoch 1/5``: the rank from ``srun --label``, and the epoch."""
_MOST = 4 << 20
"""The largest number of characters that toolkit searches, from the beginning of the output."""


def all_alone(text: str, record: JobRecord) -> bool:
    """Return whether each rank of a job reports that it is rank 0 of a world of size 1.

    A report is a text with a rank and a world size, such as ``rank 0 of 1``. The result is False if a report
    has a rank other than 0 or a world size other than 1, or if the output has fewer reports than ranks. If a
    program such as torchrun starts the ranks, one report for each node is enough, but the output must have at
    least two reports.
    """
    spec, starter = record.spec, record.plan.starter if record.plan else ""
    if spec.ranks < 2:
        return False
    least = max(2, spec.nodes) if starter else spec.ranks
    count = 0
    for line in text[:_MOST].splitlines():
        for match in _WORLDS.finditer(line[:2000]):
            number, size = (int(value) for value in match.groups() if value is not None)
            if size != 1 or number != 0:
                return False
            count += 1
    return count >= least


def same_epochs(text: str, ranks: int) -> str:
    """Return the first text about an epoch, such as ``Epoch 1/5``, that each of the ``ranks`` ranks prints.

    The result is empty if there is no such text. If all ranks print the text, each rank may train alone.
    """
    if ranks < 2:
        return ""
    ranks_of: dict[str, set[str]] = {}
    for line in text[:_MOST].splitlines():
        if match := _EPOCH.match(line[:2000]):
            ranks_of.setdefault(match[2].strip(), set()).add(match[1])
    return next((line for line, names in ranks_of.items() if len(names) >= ranks), "")
