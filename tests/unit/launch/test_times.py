"""Test that each notation of a time limit gives the right number."""

from tests.unit.tables import every_row
from toolkit.scheduler.times import minutes


@every_row(("time", "count"), [("90", 90), ("1:30", 2), ("2-0", 2880), ("1-2:3:4", 1564)])
def test_a_time_is_counted_in_minutes(time, count):
    assert minutes(time) == count


@every_row("time", ["UNLIMITED", "INFINITE", "0", "0:00", "0-0"])
def test_no_limit_is_no_number(time):
    assert minutes(time) is None
