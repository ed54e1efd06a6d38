"""Recognise lines in which a rank reports that other ranks are missing or late."""

import re

from toolkit.engine.logs.clues import Clue

_TIMED_OUT = re.compile(
    r"(?i)timed? ?out waiting|wait timeout|barrier timed out|store based barrier|collective operation timeout"
    r"|watchdog got stuck|DEADLINE_EXCEEDED|timed out names?|GetKeyValue\(\) timed out|has been waiting for"
    r"|clients joined|stopped sending heartbeats|is stalled for longer than"
)


def waited_for_ranks(clue: Clue) -> bool:
    """Return whether a line says that a time limit stopped a rank because other ranks were missing."""
    together = clue.class_ in {"rendezvous", "coordination", "nccl-or-rccl"}
    return together and _TIMED_OUT.search(clue.line.text) is not None


def is_wait(clue: Clue) -> bool:
    """Return whether the fault class of a line is about ranks that are missing or late."""
    return clue.class_ in {"rendezvous", "coordination"}
