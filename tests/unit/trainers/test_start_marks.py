"""Test that a rank records when each part of its start ended."""

import json
import os
import time

import pytest

from tests.unit.tables import every_row
from toolkit.trainers import start_marks
from toolkit.trainers.training.metrics import FILE, Metrics


@pytest.fixture(autouse=True)
def _no_marks(monkeypatch):
    monkeypatch.setattr(start_marks, "_MARKS", {})


def container(root, made, process=1000.0):
    """Create ``/etc/passwd`` and files of ``/proc``; return the time of ``/etc/passwd``.

    The process begins ``process`` seconds before this time. ``made`` is the boot time of the node.
    """
    (root / "etc").mkdir()
    (root / "proc" / "self").mkdir(parents=True)
    passwd = root / "etc" / "passwd"
    passwd.write_text("x")
    now = passwd.stat().st_ctime
    ticks = int((now - process - made) * os.sysconf("SC_CLK_TCK"))
    (root / "proc" / "self" / "stat").write_text(f"1 (py th) on) S {'0 ' * 18}{ticks} 0\n")
    (root / "proc" / "stat").write_text(f"cpu 1\nbtime {int(made)}\n")
    return now


def test_the_container_is_as_old_as_its_passwd(tmp_path):
    now = container(tmp_path, time.time() - 5000)
    assert start_marks.container_made(tmp_path, now + 1) == now


@every_row(
    ("process", "begun"),
    [
        (-60.0, 1.0),  # /etc/passwd is older than the process, so it belongs to the image
        (1000.0, -1.0),  # /etc/passwd changed after the interpreter's start
    ],
)
def test_another_file_says_nothing(tmp_path_factory, process, begun):
    root = tmp_path_factory.mktemp("root")
    now = container(root, time.time() - 5000, process)
    assert start_marks.container_made(root, now + begun) is None


def test_a_system_without_proc_says_nothing(tmp_path):
    assert start_marks.container_made(tmp_path, time.time()) is None
    assert start_marks.read_calls(tmp_path / "io") is None


def test_only_the_first_time_counts_and_reads_come_with_the_first_batch():
    start_marks.mark("imports")
    first = start_marks.marks()["imports"]
    assert not start_marks.is_complete(start_marks.marks())
    start_marks.mark(start_marks.FIRST)
    start_marks.mark("imports")
    found = start_marks.marks()
    assert found["imports"] == first
    assert found["interpreter"] <= first <= found["first_batch"]
    assert found["reads"] > 0
    assert start_marks.is_complete(found)


def test_the_metrics_have_one_line_of_it(tmp_path):
    with Metrics(tmp_path) as metrics:
        metrics.header(trainer="mnist")
        metrics.started({"interpreter": 1.0})
        metrics.started({"interpreter": 1.0, "first_batch": 2.0})
        metrics.started({"interpreter": 1.0, "first_batch": 2.0})
    lines = [json.loads(line) for line in (tmp_path / FILE).read_text().splitlines()]
    assert lines[1:] == [{"record": "start", "interpreter": 1.0, "first_batch": 2.0}]
