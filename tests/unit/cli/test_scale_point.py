"""Test how toolkit collects the results of a finished job, with and without its files on this machine."""

import contextlib

import msgspec
import pytest

from tests.unit.launch.examples import RECORD
from tests.unit.launch.recorded import Recorded
from tests.unit.report.trainings import COMPLETE, END, EPOCHS, HEADER, PARTIAL, lines
from tests.unit.study.studies import study
from tests.unit.tables import every_row
from toolkit.errors import Lost
from toolkit.job import scale_point
from toolkit.job.places import HostOptions
from toolkit.launch.tracking import records
from toolkit.model.progress import Silent
from toolkit.model.study import Point
from toolkit.run import patience
from toolkit.study import folder

DONE = msgspec.structs.replace(RECORD, state="completed", exit_code=0)
POINT = Point(ranks=2, nodes=2, state="submitted", tries=1, job=RECORD.key)
METRICS = f"{RECORD.spec.directory}/metrics.jsonl"
OUTPUT = f"{RECORD.spec.directory}/output.log"


@pytest.fixture(autouse=True)
def _own_state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


@pytest.fixture
def there(monkeypatch):
    """Return the files on the fake cluster, by path; the cluster is unreachable until a file is added."""
    files = {}

    @contextlib.contextmanager
    def reached(_record, _tell):
        if not files:
            raise Lost("login: the SSH connection was lost")
        yield Recorded(files)

    monkeypatch.setattr(scale_point, "connect_with_retries", reached)
    return files


def settled(tmp_path, **more):
    made = study([(2, 2)], **more)
    folder.save(tmp_path / "study", made)
    return scale_point.settle(tmp_path / "study", made, POINT, DONE, Silent())


@every_row("kept", [None, b"", PARTIAL, COMPLETE[:-5], b"{"])
def test_metrics_that_were_not_brought_here_whole_are_read_once_more(tmp_path, there, kept):
    if kept is not None:
        records.keep(DONE, records.METRICS, kept)
    there[METRICS] = COMPLETE
    point = settled(tmp_path)
    assert (point.state, point.why) == ("measured", "")
    assert point.figures.seconds == (1.0,)
    assert (records.folder(DONE.key) / records.METRICS).read_bytes() == COMPLETE


def test_output_that_was_not_brought_here_is_read_once_more(tmp_path, there):
    there[OUTPUT] = b"0: img/sec: 100\n0: img/sec: 250\n"
    point = settled(tmp_path, said={}, words=("bench",), pattern="img/sec: ([0-9]+)")
    assert point.figures.rates == (250.0,)


def test_metrics_that_are_whole_are_not_asked_for(tmp_path, there):
    records.keep(DONE, records.METRICS, COMPLETE)
    assert settled(tmp_path).state == "measured"


def test_metrics_without_a_result_there_too_are_those_of_a_failure(tmp_path, there):
    there[METRICS] = lines(HEADER, *EPOCHS)
    point = settled(tmp_path)
    assert (point.state, point.figures) == ("failed", None)
    assert "did not finish" in point.why
    there[METRICS] = b""
    records.keep(DONE, records.METRICS, b"")
    assert "wrote no metrics" in settled(tmp_path).why


def test_a_run_whose_files_cannot_be_reached_is_not_thrown_away(tmp_path, there):
    with pytest.raises(Lost):
        settled(tmp_path)


def test_a_place_that_is_away_is_waited_for_before_its_files_are_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(patience, "_FIRST_PAUSE", 0.01)
    away = [Lost("login port 22: cannot be reached over SSH: Connection refused")] * 2

    def opened(_where):
        if away:
            raise away.pop()
        return Recorded({METRICS: COMPLETE})

    monkeypatch.setattr(HostOptions, "open", opened)
    assert settled(tmp_path).state == "measured"
    assert away == []


def test_a_training_of_fewer_ranks_than_were_asked_for_is_a_failure(tmp_path, there):
    records.keep(DONE, records.METRICS, lines({**HEADER, "world_size": 1}, *EPOCHS, END))
    point = settled(tmp_path)
    assert (point.state, point.figures) == ("failed", None)
    assert point.why.startswith("the study requested 2 ranks, but the training had 1: ")
