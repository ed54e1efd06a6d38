"""Test that toolkit's predictions for launches in public reports are at least as good as before."""

from collections import Counter

import pytest

from tests.field.cases import GRADES, Graded, grade, read, table

RANK = ("right", "not-gradable", "undecided", "no-words", "useless", "safe", "dangerous")
"""Grades of a prediction, best first. A missing answer is better than a wrong answer."""
UNKNOWABLE = {"pyxis-hpl-88-fixed"}
"""Cases that depend on a setting in slurmd's service file, for which toolkit has no fact."""
RIGHT = 213
DANGEROUS = 0
"""The smallest number of ``right`` and the greatest number of ``dangerous`` grades that the test allows.
Change them only if the engine improves.
"""


@pytest.fixture(scope="module")
def graded() -> tuple[Graded, ...]:
    return tuple(map(grade, read()))


def test_no_case_is_worse_than_before(graded: tuple[Graded, ...]) -> None:
    worse = {
        g.case.id: f"{g.case.before} -> {g.grade}: {g.said.outcome}, {g.said.because}"
        for g in graded
        if g.case.id not in UNKNOWABLE and RANK.index(g.grade) > RANK.index(g.case.before)
    }
    assert not worse


def test_grades_are_as_good_as_recorded(graded: tuple[Graded, ...]) -> None:
    counts = Counter(g.grade for g in graded)
    assert counts["right"] >= RIGHT, table(graded)
    assert counts["dangerous"] <= DANGEROUS, table(graded)


def test_cases_are_cited_and_distinct() -> None:
    cases = read()
    assert len({case.id for case in cases}) == len(cases)
    assert all(case.source and case.stated and case.cause for case in cases)


def test_the_table_counts_every_case(graded: tuple[Graded, ...]) -> None:
    rows = table(graded).splitlines()[1:]
    assert [row.split()[0] for row in rows] == list(GRADES)
    assert sum(int(row.split()[column]) for row in rows for column in (2, 4)) == len(graded)
