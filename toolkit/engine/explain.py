"""Say what job output means: known lines in it, their causes and what mends them; pure."""

import re
from functools import cache

from toolkit import knowledge
from toolkit.knowledge import Signature
from toolkit.model.finding import Finding

_MOST_LINES = 200_000
"""Lines of output that are looked at, from both ends; causes stand at the beginning or the end."""
_LINE = 2000
_SHOWN = 3


def explain(text: str) -> tuple[Finding, ...]:
    """Return what is recognised in ``text``, causes before consequences; empty where nothing is."""
    lines = _lines(text)
    found: list[Finding] = []
    for signature in knowledge.signatures():
        evidence = _evidence(signature, lines)
        if evidence:
            found.append(_finding(signature, evidence))
    return tuple(dict.fromkeys(found))


def _lines(text: str) -> list[str]:
    lines = [line[:_LINE].rstrip() for line in text.splitlines()]
    half = _MOST_LINES // 2
    return lines if len(lines) <= _MOST_LINES else lines[:half] + lines[-half:]


def _evidence(signature: Signature, lines: list[str]) -> tuple[str, ...]:
    pattern = _compiled(signature.pattern)
    shown: list[str] = []
    for number, line in enumerate(lines, start=1):
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
