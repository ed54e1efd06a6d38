"""Test work in a thread: it starts at once, and gives its result or error when a caller needs it."""

import threading

import pytest

from toolkit.errors import Missing
from toolkit.job.meanwhile import Meanwhile


def test_work_runs_before_its_result_is_wanted():
    ran = threading.Event()
    work = Meanwhile(lambda: ran.set() or 7)
    assert ran.wait(10)
    assert work.result() == 7


def test_the_error_comes_where_the_result_is_wanted():
    def fail():
        raise Missing("away")

    work = Meanwhile(fail)
    with pytest.raises(Missing, match="away"):
        work.result()
