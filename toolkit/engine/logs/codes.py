"""Find the error codes of ``numbers.toml`` in lines of job output, by number, name or text."""

import re
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

from toolkit.knowledge.signatures import CodeFamily, FaultCode, families
from toolkit.model.finding import ErrorCode

_MOST = 2
"""Maximum number of error codes that an explanation shows."""


class _CodeIndex(NamedTuple):
    patterns: tuple[re.Pattern[str], ...]
    numbers: dict[int, FaultCode]
    names: dict[str, FaultCode]
    texts: tuple[tuple[str, FaultCode], ...]
    text_pattern: re.Pattern[str] | None


def code_in(text: str, family: str) -> FaultCode | None:
    """Return the error code of a ``family`` (such as ``cuda`` or ``errno``) that a line contains; ``None`` if
    the line contains none.

    The family's patterns find a code by its number, its name or its text. If no pattern finds a code, the
    function looks for the text alone, such as ``Too many open files``. It looks only for texts that
    ``numbers.toml`` marks with ``telling``.
    """
    index = _index(family)
    if code := _by_pattern(index, text):
        return code
    told = index.text_pattern.search(text) if index.text_pattern else None
    return next((code for words, code in index.texts if told and words == told[1].lower()), None)


def deciding_code(text: str, names: Iterable[str]) -> FaultCode | None:
    """Return the error code that decides the fault class of a line; ``None`` without such a code. The
    function searches the families in the order of ``names``.
    """
    found = (code_in(text, name) for name in names)
    return next((code for code in found if code and code.class_), None)


def error_codes(texts: Iterable[str]) -> tuple[ErrorCode, ...]:
    """Return the error codes in lines of job output, for display: the first code of each family, at most two
    codes in total.

    Some codes of CUDA and HIP have the same text. If a line with such a text matches a pattern of only one
    of the two families, the result omits the code of the other family.
    """
    shown: dict[str, tuple[FaultCode, bool]] = {}
    for text in texts:
        for name in families():
            code = code_in(text, name)
            if code and name not in shown:
                shown[name] = code, _by_pattern(_index(name), text) is not None
    named = {code.text.lower() for code, is_named in shown.values() if is_named and code.text}
    kept = [n for n, (code, is_named) in shown.items() if is_named or code.text.lower() not in named]
    return tuple(_for_display(families()[name], shown[name][0]) for name in kept)[:_MOST]


def _for_display(family: CodeFamily, code: FaultCode) -> ErrorCode:
    name = code.names[0] if code.names else ""
    return ErrorCode(
        family=family.title,
        number=code.number,
        name=name,
        text=code.text,
        means=code.means,
        source=family.source,
    )


def _by_pattern(index: _CodeIndex, text: str) -> FaultCode | None:
    """Return the first error code that a pattern of the family finds in a line such as ``CUDA error 98``."""
    found = (match for pattern in index.patterns for match in pattern.finditer(text))
    return next((code for match in found if (code := _find_code(index, match))), None)


def _find_code(index: _CodeIndex, match: re.Match[str]) -> FaultCode | None:
    groups = match.groupdict()
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
