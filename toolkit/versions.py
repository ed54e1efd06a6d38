"""Parse and compare the version numbers of packages, libraries and programs.

Images contain versions such as ``4.2.2-1+deb12u1``, ``7.0.0~rc1-2+b1``, ``5.0.8a1``, ``v4.1.4`` and
``2021.19.0``. toolkit compares only the upstream version, and ignores a packager's revision and epoch.
"""

import re
from functools import cache, lru_cache

from packaging.version import Version

OLDEST_PYTHON = "3.11"
"""The oldest Python that toolkit and its trainers support, as in ``requires-python`` of pyproject.toml."""

_UPSTREAM = re.compile(
    r"^\s*v?(?:\d+:)?(?P<number>\d+(?:\.\d+)*)[-~.]?(?P<pre>(?:a|b|rc|alpha|beta)\d*(?![a-z0-9]))?"
)
_PLAIN = re.compile(r"\d+(?:\.\d+)*(?:[-~.]?(?:a|b|rc|alpha|beta|post)\d*)?(?:\.\*)?")
_CLAUSE = re.compile(r"^(?P<sign>>=|<=|==|>|<)(?P<version>.+)$")


@cache
def parse(text: str) -> Version | None:
    """Return the upstream version at the start of ``text``, or ``None`` if ``text`` does not start with a
    version.
    """
    found = _UPSTREAM.match(text.lower())
    if not found:
        return None
    try:
        return Version(found["number"] + (found["pre"] or ""))
    except ValueError:  # InvalidVersion, or too many digits for Python to convert
        return None


def upstream(text: str) -> str:
    """Return a version without the packager's additions: ``4.2.2`` for ``4.2.2-1+deb12u1``."""
    version = parse(text)
    return text if version is None else str(version)


def is_same_version(left: str, right: str) -> bool:
    """Return whether two texts name the same upstream version. If one of the texts has no version, return
    whether the texts are equal.
    """
    a, b = parse(left), parse(right)
    return left == right if a is None or b is None else a == b


def older(left: str | None, right: str | None) -> bool:
    """Return whether the version ``left`` is older than the version ``right``. Return False if a text has no
    version.
    """
    a, b = parse(left or ""), parse(right or "")
    return a is not None and b is not None and a < b


@lru_cache(maxsize=4096)
def within(text: str, bounds: str) -> bool:
    """Return whether the version ``text`` satisfies every clause of ``bounds``, such as ``">=4.0,<5"``.

    A pre-release is older than its release, so ``6.0.0rc2`` is within ``<6``. Every text satisfies empty
    ``bounds``. A text without a version satisfies only empty ``bounds``.
    """
    version = parse(text)
    clauses = [_clause(part) for part in bounds.split(",") if part.strip()]
    if version is None:
        return not clauses
    return all(_holds(version, sign, limit) for sign, limit in clauses)


def is_rounded(text: str, bounds: str) -> bool:
    """Return whether the version ``text`` has too few components to decide whether it is within ``bounds``.

    For example, ``20.11`` may mean 20.11.0 or 20.11.9, and only 20.11.9 is within ``>=20.11.3``.
    """
    version = parse(text)
    if version is None or version.is_prerelease:
        return False
    given = version.release
    limits = (limit.release for _, limit in map(_clause, bounds.split(",")))
    return any(limit[: len(given)] == given and any(limit[len(given) :]) for limit in limits)


def _holds(version: Version, sign: str, limit: Version) -> bool:
    match sign:
        case ">=":
            return version >= limit
        case "<=":
            return version <= limit
        case ">":
            return version > limit
        case "<":
            return version < limit
        case _:
            return version == limit


@cache
def _clause(text: str) -> tuple[str, Version]:
    found = _CLAUSE.match(text.strip())
    limit = parse(found["version"]) if found else None
    if found is None or limit is None:
        raise ValueError(f"{text!r} is not a bound such as '>=4.0'")
    return found["sign"], limit


def meets(text: str, constraint: str) -> bool:
    """Return whether the version ``text`` matches ``constraint``, such as ``*`` (every version),
    ``2.15.*``, ``>=4.1,<5`` or ``4.1.4``.
    """
    if constraint == "*":
        return True
    if constraint.endswith(".*"):
        version, series = parse(text), parse(constraint[:-2])
        return (
            version is not None
            and series is not None
            and version.release[: len(series.release)] == series.release
        )
    return within(text, constraint) if constraint[:1] in "<>=" else is_same_version(text, constraint)


def is_wish(text: str) -> bool:
    """Return whether a text is a constraint that :func:`meets` can parse."""
    if text[:1] in "<>=" and text:
        return all(_is_clause(part) for part in text.split(","))
    return text == "*" or bool(_PLAIN.fullmatch(text))


def _is_clause(text: str) -> bool:
    found = _CLAUSE.match(text.strip())
    version = found["version"].strip() if found else ""
    return bool(_PLAIN.fullmatch(version)) and not version.endswith("*")
