"""Find the world sizes that the ranks of a job report in its output."""

import re

from toolkit.model.job import JobRecord

_WORLDS = re.compile(
    r"""\b(?:rank|process|proc|task|worker)[ \t]*(?:\#|=|:|number|id)?[ \t]*(\d{1,6})
        [ \t]*(?:/|of|out[ \t]of)[ \t]*(\d{1,6})\b
    |"rank":[ \t]*(\d{1,6}),[ \t]*"size":[ \t]*(\d{1,6})\b
    |\brank[ \t]*[=:][ \t]*(\d{1,6})[,; \t]+(?:world[ _-]?)?size[ \t]*[=:][ \t]*(\d{1,6})\b""",
    re.IGNORECASE | re.VERBOSE,
)
"""A pattern for ``Hello from rank 0 of 1``, ``process 0/2``, ``{"rank": 0, "size": 2`` and
``rank=0 size=2``.
"""
_EPOCH = re.compile(
    r"^(\d{1,6}): (.{0,20}\bepoch\b[ \t:=\[]*\d{1,6}[ \t]*(?:/[ \t]*\d{1,6})?)", re.IGNORECASE
)
"""A pattern for ``1: Epoch 1/5``: the rank in the label of ``srun --label``, and the epoch that this rank
begins."""
_MOST = 4 << 20


def all_alone(text: str, record: JobRecord) -> bool:
    """Return whether each rank of a job reports that it is rank 0 of a world of size 1.

    A report is a line with a rank and a world size. The result is False if a rank reports a larger world, or
    if the output has fewer reports than ranks. If a starter such as torchrun starts the ranks, one report for
    each node is enough.
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
    """Return the first line about an epoch that all ``ranks`` ranks print, or an empty string."""
    if ranks < 2:
        return ""
    ranks_of: dict[str, set[str]] = {}
    for line in text[:_MOST].splitlines():
        if match := _EPOCH.match(line[:2000]):
            ranks_of.setdefault(match[2].strip(), set()).add(match[1])
    return next((line for line, names in ranks_of.items() if len(names) >= ranks), "")
