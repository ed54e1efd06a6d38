"""Test that the changelog follows rule 12 of ``docs/writing.md``."""

import datetime as dt
import itertools
import re
from collections.abc import Iterator

from packaging.version import Version

from docs.generate.outside import ROOT
from tests.unit.tables import every_row
from toolkit import __version__

TEXT = (ROOT / "CHANGELOG.md").read_text()
SECTIONS = ["Added", "Changed", "Deprecated", "Fixed", "Removed", "Security"]
WORDS = 25
_RELEASE = re.compile(r"## (?P<version>\d+\.\d+\.\d+) - (?P<date>\d{4}-\d{2}-\d{2})")


def releases(text: str) -> list[tuple[str, str]]:
    parts = re.split(r"^(## .*)$", text, flags=re.MULTILINE)[1:]
    return list(zip(parts[::2], parts[1::2], strict=True))


def faults(text: str) -> list[str]:
    found = releases(text)
    return [
        *_of_headings([head for head, _ in found]),
        *(f for head, body in found for f in _of_body(head, body)),
    ]


def _of_headings(heads: list[str]) -> Iterator[str]:
    if heads[:1] != ["## Unreleased"]:
        yield "the first heading is not Unreleased"
    read = [_RELEASE.fullmatch(head) for head in heads[1:]]
    yield from (f"{head}: not VERSION - DATE" for head, one in zip(heads[1:], read, strict=True) if not one)
    known = [one for one in read if one]
    for later, earlier in itertools.pairwise(known):
        if Version(later["version"]) <= Version(earlier["version"]):
            yield f"{later['version']} stands above {earlier['version']}"
        if dt.date.fromisoformat(later["date"]) < dt.date.fromisoformat(earlier["date"]):
            yield f"{later['version']} is older than {earlier['version']}"


def _of_body(head: str, body: str) -> Iterator[str]:
    sections: list[str] = []
    for line in body.splitlines():
        if line.startswith("### "):
            sections.append(line.removeprefix("### "))
        elif line.startswith("- "):
            yield from (f"{head}: {wrong}: {line}" for wrong in _of_bullet(line[2:], sections))
        elif line:
            yield f"{head}: neither a heading nor a bullet: {line}"
    if sections != [name for name in SECTIONS if name in sections]:
        yield f"{head}: sections are {', '.join(sections)}; allowed in this order: {', '.join(SECTIONS)}"


def _of_bullet(text: str, sections: list[str]) -> Iterator[str]:
    if not sections:
        yield "a bullet outside a section"
    if not text.startswith("`"):
        yield "does not start with a command or an option in backticks"
    if (count := len(text.split())) > WORDS:
        yield f"{count} words"


def test_the_changelog_has_its_form() -> None:
    assert faults(TEXT) == []


def test_the_newest_release_is_the_version_of_the_program() -> None:
    newest = next(found["version"] for head, _ in releases(TEXT) if (found := _RELEASE.fullmatch(head)))
    assert newest == __version__


def test_no_release_is_empty_and_no_bullet_stands_twice() -> None:
    assert [head for head, body in releases(TEXT)[1:] if "\n- " not in body] == []
    bullets = re.findall(r"^- .*$", TEXT, re.MULTILINE)
    assert sorted(bullets) == sorted(set(bullets))


GOOD = """# Changelog

## Unreleased

## 0.2.0 - 2026-01-02

### Added

- `toolkit x` does something.

### Fixed

- `--y` works.

## 0.1.0 - 2026-01-01

### Added

- `toolkit` is there.
"""


def test_a_good_changelog_has_no_faults() -> None:
    assert faults(GOOD) == []


@every_row(
    ("good", "wrong", "said"),
    [
        ("## Unreleased", "## Next", "not Unreleased"),
        ("## 0.2.0 - 2026-01-02", "## 0.2.0", "not VERSION - DATE"),
        ("0.2.0", "0.0.9", "0.0.9 stands above 0.1.0"),
        ("2026-01-02", "2025-12-31", "0.2.0 is older than 0.1.0"),
        ("### Fixed", "### Mended", "allowed in this order"),
        ("### Fixed", "### Added", "allowed in this order"),
        ("`--y` works.", "It works.", "in backticks"),
        ("`--y` works.", f"`--y` {'works ' * WORDS}", "26 words"),
        ("- `--y` works.", "Some text.", "neither a heading nor a bullet"),
        ("### Added\n\n- `toolkit` is", "- `toolkit` is", "outside a section"),
    ],
)
def test_each_fault_is_found(good: str, wrong: str, said: str) -> None:
    (fault, *_) = faults(
        GOOD.replace(good, wrong, 1) if good != "### Added\n\n- `toolkit` is" else GOOD.replace(good, wrong)
    )
    assert said in fault
