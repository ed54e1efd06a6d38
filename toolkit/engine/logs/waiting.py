"""Recognise lines in which a rank reports that other ranks are missing or late."""

import re
from collections.abc import Iterable

from toolkit.engine.logs.clues import Clue
from toolkit.probe.hostlist import fold

_TIMED_OUT = re.compile(
    r"(?i)timed? ?out waiting|wait timeout|barrier timed out|store based barrier|collective operation timeout"
    r"|watchdog got stuck|DEADLINE_EXCEEDED|timed out names?|GetKeyValue\(\) timed out|has been waiting for"
    r"|clients joined|stopped sending heartbeats|is stalled for longer than"
)

_JOINED = re.compile(r"\bworld_size=(?P<size>\d{1,9}), worker_count=(?P<joined>\d{1,9})\b")
"""A pattern for a message of PyTorch: ``world_size`` is the number of expected ranks, and ``worker_count`` is
the number of ranks that have joined.
"""

_COLLECTIVE = re.compile(
    r"\[Rank (\d{1,6})\] Watchdog caught collective operation timeout: "
    r"WorkNCCL\(SeqNum=(\d{1,12}), OpType=(\w{1,40})"
)


def waited_for_ranks(clue: Clue) -> bool:
    """Return whether a line says that a time limit stopped a rank because other ranks were missing."""
    together = clue.class_ in {"rendezvous", "coordination", "nccl-or-rccl"}
    joined = _JOINED.search(clue.line.text)
    if joined and int(joined["joined"]) > int(joined["size"]):
        return False  # more ranks than expected joined
    return together and _TIMED_OUT.search(clue.line.text) is not None


def is_wait(clue: Clue) -> bool:
    """Return whether the fault class of a line is about ranks that are missing or late."""
    return clue.class_ in {"rendezvous", "coordination"}


def collectives(clues: Iterable[Clue]) -> tuple[str, ...]:
    """Return the collectives in which ranks waited until NCCL's time limit, sorted by sequence number.

    Each string has the operation, its sequence number and the waiting ranks: ``ALLREDUCE 808 (ranks 0-2)``.
    The result is empty if fewer than two ranks report that they waited. PyTorch prints these reports
    (pytorch/pytorch:torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp).
    """
    found = {int(m[1]): (int(m[2]), m[3]) for clue in clues if (m := _COLLECTIVE.search(clue.line.text))}
    if len(found) < 2:
        return ()
    named: dict[tuple[int, str], list[str]] = {}
    for rank, collective in found.items():
        named.setdefault(collective, []).append(f"{rank}")
    return tuple(f"{kind} {number} ({_ranks(ranks)})" for (number, kind), ranks in sorted(named.items()))


def _ranks(numbers: list[str]) -> str:
    """Return numbers of ranks in short form: ``ranks 0-2, 5``."""
    folded = fold(numbers).strip("[]").replace(",", ", ")
    return f"rank{'s' if len(numbers) > 1 else ''} {folded}"
