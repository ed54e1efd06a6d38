"""Say what job output means: known lines in it, their causes and what mends them; pure."""

import math
import re
from functools import cache

from toolkit import knowledge
from toolkit.engine.alone import alone
from toolkit.engine.joblines import Output
from toolkit.knowledge.signatures import Signature
from toolkit.model.finding import Finding

_SHOWN = 3
_NEAR = 40
"""Lines after a telling one that belong to the same message."""

ENDING = r"Terminating StepId|Job step aborted: Waiting up to|\*\*\* STEP \S+ ON \S+ CANCELLED AT "
"""Slurm ends the ranks that are left."""

_SUSPECT = re.compile(
    r"error|fatal|\bfail|abort|traceback|exception|killed|segmentation|cannot|can't|not found|denied|refused",
    re.IGNORECASE,
)
_SUSPECTS = 6
_SEVERITIES = ("error", "warning", "info")


def explain(text: str, tail: str = "", skipped: int = 0) -> tuple[Finding, ...]:
    """Return what is recognised in ``text``, causes before consequences; empty where nothing is.

    ``tail`` is the end of an output whose middle, with ``skipped`` line breaks, was left out.
    """
    output = Output(text, tail, skipped)
    causes: list[Finding] = []
    general: list[Finding] = []
    for signature in knowledge.signatures():
        if evidence := _evidence(signature, output):
            (general if signature.general else causes).append(_finding(signature, evidence))
    if lonely := alone(output):
        # The cause, where a library told it, is the better answer; this is what follows from it.
        causes.append(lonely)
    if not any(finding.severity == "error" for finding in causes):
        causes += general
    return tuple(sorted(dict.fromkeys(causes), key=lambda f: _SEVERITIES.index(f.severity)))


def suspects(text: str, tail: str = "", skipped: int = 0) -> tuple[str, ...]:
    """Return the last lines that look like errors, for where nothing is recognised."""
    lines = Output(text, tail, skipped).lines
    found = [line.cited for line in lines if _SUSPECT.search(line.text)]
    return tuple(dict.fromkeys(found))[-_SUSPECTS:]


def _evidence(signature: Signature, output: Output) -> tuple[str, ...]:
    shown: dict[str, None] = {}
    overcome, ending = _overcome(signature, output), _ending(signature, output)
    for position in output.matching(_compiled(signature.pattern)):
        after = _after(signature, output, position)
        if not overcome <= position < ending or after is None:
            continue
        shown |= dict.fromkeys((output.lines[position].cited, *after))
        if len(shown) >= _SHOWN:
            break
    return tuple(shown)[: _SHOWN + len(signature.then)]


def _overcome(signature: Signature, output: Output) -> int:
    """Return the position of the last line that shows that the ranks came through; 0 where there is none."""
    found = output.matching(_compiled(signature.overcome)) if signature.overcome else ()
    return max(found, default=0)


def _ending(signature: Signature, output: Output) -> float:
    """Return the position of the line from which on a signature tells nothing."""
    found = output.matching(_compiled(ENDING)) if signature.alive else ()
    return min(found, default=math.inf)


def _after(signature: Signature, output: Output, position: int) -> tuple[str, ...] | None:
    """Return the lines that must follow, or ``None`` where one of them does not."""
    near = list(output.following(position, _NEAR)) if signature.then else []
    found = [
        next((line for line in near if _compiled(then).search(line.text)), None) for then in signature.then
    ]
    return tuple(line.cited for line in found if line) if None not in found else None


def _finding(signature: Signature, evidence: tuple[str, ...]) -> Finding:
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
