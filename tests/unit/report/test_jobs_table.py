"""Test the list of jobs: one line per job, the newest job first."""

import msgspec

from tests.unit.launch.examples import RECORD
from toolkit.report.job import jobs_table

ROWS = [
    (msgspec.structs.replace(RECORD, key=f"train-20261125-23575{n}-bb6172", id=str(n)), n != 1)
    for n in (1, 2)
]


def test_a_narrow_terminal_has_one_line_for_a_job():
    lines = jobs_table(ROWS, 80).splitlines()
    assert [line.split()[0] for line in lines[2:4]] == [row[0].key for row in reversed(ROWS)]
    assert all(len(line) <= 80 for line in lines)
    assert " ?  " in lines[3]
    assert " ?  " not in lines[2]
    assert lines[4:] == ["", "?  the cluster did not answer; this was the last known state"]


def test_the_longest_state_and_name_fit_a_narrow_terminal():
    long = msgspec.structs.replace(RECORD, key=f"{'x' * 34}-20261125-235750-bb6172", id="12345678")
    assert max(map(len, jobs_table([(long, False)], 80).splitlines())) <= 80


def test_a_wide_terminal_shows_mode_and_place():
    text = jobs_table(ROWS, 160)
    assert RECORD.mode in text
    assert RECORD.place in text
    assert text == jobs_table(ROWS, None)
