"""Error codes in a line of job output: numbers, names and texts of ``numbers.toml``; pure."""

import re
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

from toolkit.knowledge.signatures import CodeFamily, FaultCode, families
from toolkit.model.finding import ErrorCode

_MOST = 2
"""Codes that are shown."""


class _CodeIndex(NamedTuple):
    patterns: tuple[re.Pattern[str], ...]
    numbers: dict[int, FaultCode]
    names: dict[str, FaultCode]
    texts: tuple[tuple[str, FaultCode], ...]
    telling: re.Pattern[str] | None


def code_in(text: str, family: str) -> FaultCode | None:
    """Return the first code of a family that a line names, by number, by name, or by its whole text."""
    index = _index(family)
    for pattern in index.patterns:
        for found in pattern.finditer(text):
            if code := _meant(index, found):
                return code
    told = index.telling.search(text) if index.telling else None
    return next((code for words, code in index.texts if told and words == told[1].lower()), None)


def deciding_code(text: str, names: Iterable[str]) -> FaultCode | None:
    """Return the first code of some families that decides the class of a line."""
    found = (code_in(text, name) for name in names)
    return next((code for code in found if code and code.class_), None)


def error_codes(texts: Iterable[str]) -> tuple[ErrorCode, ...]:
    """Return the codes that lines name, as they are shown; of each family the first."""
    shown: dict[str, ErrorCode] = {}
    for text in texts:
        for family in families().values():
            code = code_in(text, family.id)
            if code and family.id not in shown:
                shown[family.id] = _shown(family, code)
    return tuple(shown.values())[:_MOST]


def _shown(family: CodeFamily, code: FaultCode) -> ErrorCode:
    name = code.names[0] if code.names else ""
    return ErrorCode(
        family=family.title,
        number=code.number,
        name=name,
        text=code.text,
        means=code.means,
        source=family.source,
    )


def _meant(index: _CodeIndex, found: re.Match[str]) -> FaultCode | None:
    groups = found.groupdict()
    if number := groups.get("number"):
        return index.numbers.get(int(number))
    if shell := groups.get("shell"):
        return index.numbers.get(int(shell) - 128)
    if name := groups.get("name"):
        return index.names.get(name)
    text = (groups.get("text") or "").lower()
    return next((code for words, code in index.texts if text.startswith(words)), None)


@cache
def _index(name: str) -> _CodeIndex:
    family = families()[name]
    texts = sorted(((c.text.lower(), c) for c in family.code if c.text), key=lambda pair: -len(pair[0]))
    telling = [re.escape(code.text) for code in family.code if code.telling and code.text]
    return _CodeIndex(
        tuple(re.compile(pattern) for pattern in family.patterns),
        {code.number: code for code in family.code if code.number is not None},
        {name: code for code in family.code for name in code.names},
        tuple(texts),
        re.compile(rf"(?i)(?:^|[:(\]] ?)({'|'.join(telling)})") if telling else None,
    )
