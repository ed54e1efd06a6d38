"""A finding: one thing that the engine noticed, with the evidence that it rests on."""

from typing import Literal

import msgspec

Severity = Literal["error", "warning", "info"]


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """What is so, why it matters and what mends it.

    ``id`` is a slug that names the rule in logs, tickets and documentation.
    ``evidence`` holds one line a fact: where it was read and what was read there; never empty.
    ``modes`` names the launch modes that it speaks of; empty means all.
    ``undecided`` says that the rule could not judge: a fact was missing, or nobody measured such a case.
    """

    id: str
    severity: Severity
    title: str
    evidence: tuple[str, ...]
    fix: str
    source: str
    modes: tuple[str, ...] = ()
    undecided: bool = False


class OutputExplanation(msgspec.Struct, frozen=True, kw_only=True):
    """What job output means, as ``toolkit explain --json`` prints it.

    ``findings`` are what is recognised, causes before consequences. Without findings, ``suspects`` are the
    last lines that look like errors. ``unread`` are the numbers of the first and the last line between which
    not all was read.
    """

    schema: str = "toolkit.explain/1"
    findings: tuple[Finding, ...]
    suspects: tuple[str, ...] = ()
    unread: tuple[int, int] | None = None
