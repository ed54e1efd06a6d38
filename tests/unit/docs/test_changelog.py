"""Test how toolkit finds the section of a release in the changelog."""

from docs.generate.changelog import newest_date, problems
from tests.unit.tables import every_row

GOOD = """# Changelog

## Unreleased

### Added

## 1.2.0 - 2026-12-01

### Added

- `toolkit x`: it does y.

### Fixed

- `toolkit z` fails no more.

## [1.1.0] - 2026-11-01

### Changed

- `toolkit y`
"""


@every_row("version", ["1.2.0", "1.1.0"])
def test_a_complete_section_lacks_nothing(version):
    assert problems(GOOD, version) == []


@every_row(
    ("old", "new", "said"),
    [
        ("## 1.2.0 - 2026-12-01", "## 1.2.1 - 2026-12-01", "there is no section `## 1.2.0`"),
        (" - 2026-12-01", "", "the heading of 1.2.0 has no date (YYYY-MM-DD)"),
        ("- `toolkit z` fails no more.\n", "", "`### Fixed` of 1.2.0 lists no change"),
        ("- `toolkit x`: it does y.\n", "", "`### Added` of 1.2.0 lists no change"),
    ],
)
def test_what_is_missing_is_named(old, new, said):
    assert problems(GOOD.replace(old, new), "1.2.0") == [said]


def test_a_section_without_any_change_is_empty():
    text = "## 1.0.0 - 2026-12-01\n\n## 0.9.0 - 2026-11-01\n\n- a change\n"
    assert problems(text, "1.0.0") == ["the section of 1.0.0 lists no change"]


def test_a_version_that_begins_like_another_is_another():
    assert problems(GOOD, "1.2") == ["there is no section `## 1.2`"]


def test_the_newest_date_is_that_of_the_newest_release():
    assert newest_date(GOOD) == "2026-12-01"
    assert newest_date("# Changelog\n\n## Unreleased\n") == ""
