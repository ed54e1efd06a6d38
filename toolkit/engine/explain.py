"""Say what job output means: known lines in it, their causes and what mends them; pure."""

import re
from functools import cache

from toolkit import knowledge
from toolkit.knowledge import Signature
from toolkit.model.finding import Finding

_MOST_LINES = 200_000
"""Lines of output that are looked at, from both ends; causes stand at the beginning or the end."""
_LINE = 2000
_Line = tuple[int, str]
_SHOWN = 3


def explain(text: str, tail: str = "", skipped: int = 0) -> tuple[Finding, ...]:
    """Return what is recognised in ``text``, causes before consequences; empty where nothing is.

    ``tail`` is the end of an output whose middle, with ``skipped`` line breaks, was left out.
    """
    lines = _lines(text, 1)
    if tail:
        lines += _lines(tail, text.count("\n") + skipped + 1)
    found: list[Finding] = []
    for signature in knowledge.signatures():
        evidence = _evidence(signature, lines)
        if evidence:
            found.append(_finding(signature, evidence))
    return tuple(dict.fromkeys(found))


def _lines(text: str, first: int) -> list[_Line]:
    """Number the lines as an editor does; what a progress bar wrote over shares one number."""
    numbered = list(enumerate(text.split("\n"), start=first))
    half = _MOST_LINES // 2
    kept = numbered if len(numbered) <= _MOST_LINES else numbered[:half] + numbered[-half:]
    return [(number, part[:_LINE].rstrip()) for number, line in kept for part in line.split("\r")]


def _evidence(signature: Signature, lines: list[_Line]) -> tuple[str, ...]:
    pattern = _compiled(signature.pattern)
    shown: list[str] = []
    for number, line in lines:
        if pattern.search(line):
            shown.append(f"line {number}: {line.strip()}")
            if len(shown) == _SHOWN:
                break
    return tuple(shown)


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
    return re.compile(pattern)
