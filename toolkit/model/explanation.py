"""The explanation of job output."""

import msgspec

from toolkit.model.finding import Finding


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
