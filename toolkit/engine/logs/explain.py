"""Say what job output means: known lines in it, their causes and what mends them; pure."""

import math
import re
from dataclasses import dataclass
from functools import cache
from itertools import islice

from toolkit import knowledge
from toolkit.engine.logs.alone import CLAIMS, alone
from toolkit.engine.logs.joblines import Output
from toolkit.engine.logs.logsearch import PatternLines, last_lines, search
from toolkit.knowledge.signatures import LogSignature
from toolkit.model.finding import Finding

_SHOWN = 3
_NEAR = 40
"""Lines after a telling one that belong to the same message."""

_MOST_LOOKED_AT = 100
"""Lines that a signature finds and whose followers are looked at."""

_SECONDS, _SECONDS_OF_SUSPECTS = 7.0, 1.0
"""Longest that is searched; with reading and printing, 64 MB take less than ten seconds."""

ENDING = r"Terminating StepId|Job step aborted: Waiting up to|\*\*\* STEP \S+ ON \S+ CANCELLED AT "
"""Slurm ends the ranks that are left."""

_SUSPECT = re.compile(
    r"error|fatal|\bfail|abort|traceback|exception|killed|segmentation|cannot|can't|not found|denied|refused",
    re.IGNORECASE,
)
_SUSPECTS = 6
_SEVERITIES = ("error", "warning", "info")


@dataclass(frozen=True, slots=True)
class Explanation:
    """``unread`` are the numbers of the first and the last line between which not all was read."""

    findings: tuple[Finding, ...]
    unread: tuple[int, int] | None = None


def explain(text: str | bytes, tail: str | bytes = b"", skipped: int = 0) -> tuple[Finding, ...]:
    """Return what is recognised in ``text``, causes before consequences; empty where nothing is.

    ``tail`` is the end of an output whose middle, with ``skipped`` line breaks, was left out.
    """
    return explanation(Output(text, tail, skipped)).findings


def explanation(output: Output) -> Explanation:
    """Return what is recognised in an output, and what of it was not read."""
    found = search(output, _patterns(), _SECONDS)
    causes: list[Finding] = []
    general: list[Finding] = []
    for signature in knowledge.signatures():
        if evidence := _evidence(signature, output, found):
            (general if signature.general else causes).append(_finding(signature, evidence))
    if lonely := alone(output, found):
        # The cause, where a library told it, is the better answer; this is what follows from it.
        causes.append(lonely)
    if not any(finding.severity == "error" for finding in causes):
        causes += general
    ordered = sorted(dict.fromkeys(causes), key=lambda f: _SEVERITIES.index(f.severity))
    return Explanation(tuple(ordered), found.unread)


def suspects(text: str | bytes, tail: str | bytes = b"", skipped: int = 0) -> tuple[str, ...]:
    """Return the last lines that look like errors, for where nothing is recognised."""
    return suspected(Output(text, tail, skipped))


def suspected(output: Output) -> tuple[str, ...]:
    """Return the last lines of an output that look like errors."""
    found = last_lines(output, _SUSPECT, _SUSPECTS, _SECONDS_OF_SUSPECTS)
    return tuple(dict.fromkeys(output.line(position).cited for position in found))


def _evidence(signature: LogSignature, output: Output, found: PatternLines) -> tuple[str, ...]:
    shown: dict[str, None] = {}
    overcome, ending = _overcome(signature, found), _ending(signature, found)
    likely = (p for p in found.positions[_compiled(signature.pattern)] if overcome <= p < ending)
    for position in islice(likely, _MOST_LOOKED_AT):
        after = _after(signature, output, position)
        if after is None:
            continue
        shown |= dict.fromkeys((output.line(position).cited, *after))
        if len(shown) >= _SHOWN:
            break
    return tuple(shown)[: _SHOWN + len(signature.then)]


def _overcome(signature: LogSignature, found: PatternLines) -> int:
    """Return the position of the last line that shows that the ranks came through; 0 where there is none."""
    lines = found.positions[_compiled(signature.overcome)] if signature.overcome else ()
    return max(lines, default=0)


def _ending(signature: LogSignature, found: PatternLines) -> float:
    """Return the position of the line from which on a signature tells nothing."""
    lines = found.positions[_compiled(ENDING)] if signature.alive else ()
    return min(lines, default=math.inf)


def _after(signature: LogSignature, output: Output, position: int) -> tuple[str, ...] | None:
    """Return the lines that must follow, or ``None`` where one of them does not."""
    near = list(output.following(position, _NEAR)) if signature.then else []
    found = [
        next((line for line in near if _compiled(then).search(line.text)), None) for then in signature.then
    ]
    return tuple(line.cited for line in found if line) if None not in found else None


def _finding(signature: LogSignature, evidence: tuple[str, ...]) -> Finding:
    return Finding(
        id=signature.finding or signature.id,
        severity=signature.severity,
        title=signature.title,
        evidence=evidence,
        fix=signature.fix,
        source=signature.source,
    )


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.MULTILINE)


@cache
def _patterns() -> tuple[re.Pattern[str], ...]:
    """Return all that is searched for, each pattern once."""
    signatures = knowledge.signatures()
    written = (*(s.pattern for s in signatures), *(s.overcome for s in signatures if s.overcome), ENDING)
    return (*dict.fromkeys(_compiled(pattern) for pattern in written), *CLAIMS)
