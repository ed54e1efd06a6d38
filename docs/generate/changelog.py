"""Read ``CHANGELOG.md``: the section of a release, its date, and the parts that the section lacks.

    .venv/bin/python -m docs.generate.changelog VERSION

prints what is missing from the section of a version, and exits with status 1 if something is missing.
"""

import re
import sys

from docs.generate.outside import ROOT

CHANGELOG = ROOT / "CHANGELOG.md"
_RELEASE = re.compile(r"^## \[?(?P<version>[^\]\s]+)\]?(?P<rest>.*)$", re.MULTILINE)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_BULLET = re.compile(r"^[-*] \S", re.MULTILINE)


def newest_date(text: str) -> str:
    """Return the date of the newest dated release, ``YYYY-MM-DD``; empty without a dated release."""
    dates = (_DATE.search(found["rest"]) for found in _RELEASE.finditer(text))
    return next((date[0] for date in dates if date), "")


def problems(text: str, version: str) -> list[str]:
    """Return the parts that the section of a release lacks; empty for a complete section."""
    heads = list(_RELEASE.finditer(text))
    at = next((place for place, head in enumerate(heads) if head["version"] == version), None)
    if at is None:
        return [f"there is no section `## {version}`"]
    head = heads[at]
    end = heads[at + 1].start() if at + 1 < len(heads) else len(text)
    found = [] if _DATE.search(head["rest"]) else [f"the heading of {version} has no date (YYYY-MM-DD)"]
    kinds = re.split(r"^### +", text[head.end() : end], flags=re.MULTILINE)
    if not any(_BULLET.search(kind) for kind in kinds):
        return [*found, f"the section of {version} lists no change"]
    empty = [kind.splitlines()[0].strip() for kind in kinds[1:] if not _BULLET.search(kind)]
    return [*found, *(f"`### {name}` of {version} lists no change" for name in empty)]


def main(version: str) -> int:
    """Print the parts that the section of a version lacks, a line each; return the exit status."""
    missing = problems(CHANGELOG.read_text(), version)
    for line in missing:
        print(f"CHANGELOG.md: {line}", file=sys.stderr)  # noqa: T201
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
