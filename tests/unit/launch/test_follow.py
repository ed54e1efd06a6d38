"""Following a job, against recorded answers of Slurm; the real one is in tests/integration."""

import msgspec
import pytest

from tests.unit.launch.examples import RECORD
from tests.unit.launch.recorded import AWAY, DONE, FAILED, GONE, RUNNING, Recorded
from toolkit.errors import Missing
from toolkit.launch import follow as following
from toolkit.launch import records
from toolkit.launch.follow import follow

DIRECTORY = RECORD.spec.directory


@pytest.fixture(autouse=True)
def _own_state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(following, "_OUTPUT_SECONDS", 0.01)
    monkeypatch.setattr(following, "_FIRST_QUERY", 0.02)
    monkeypatch.setattr(following, "_LAST_QUERY", 0.02)
    monkeypatch.setattr(following, "_SETTLE_SECONDS", 0.02)


def test_following_hands_over_each_line_once_and_keeps_output_and_metrics():
    slurm = Recorded(
        {f"{DIRECTORY}/output.log": b"one\ntwo\nlast without end", f"{DIRECTORY}/metrics.jsonl": b"{}\n"},
        scontrol=[RUNNING, RUNNING, DONE],
    )
    lines, states = [], []
    record = follow(slurm, RECORD, lines.append, lambda s: states.append(s.state))
    assert lines == ["one", "two", "last without end"]
    assert states == ["running", "running", "completed"]
    assert (record.state, record.exit_code) == ("completed", 0)
    assert records.find(None) == record
    assert (records.folder(record.key) / "output.log").read_text() == "one\ntwo\nlast without end"
    assert (records.folder(record.key) / "metrics.jsonl").read_text() == "{}\n"


def test_a_failed_job_keeps_its_exit_code():
    record = follow(Recorded(scontrol=[FAILED]), RECORD, print)
    assert (record.state, record.exit_code) == ("failed", 3)


def test_output_is_kept_when_following_is_interrupted():
    def stop(_line):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        follow(Recorded({f"{DIRECTORY}/output.log": b"one\n"}, scontrol=[RUNNING]), RECORD, stop)
    assert (records.folder(RECORD.key) / "output.log").read_text() == "one\n"


def test_a_controller_that_is_away_for_a_while_ends_nothing():
    states = []
    slurm = Recorded(scontrol=[RUNNING, *[AWAY] * 5, RUNNING, DONE])
    assert follow(slurm, RECORD, print, lambda s: states.append(s.answer)).state == "completed"
    assert states == ["told", *["silent"] * 5, "told", "told"]


def test_a_controller_that_stays_away_is_given_up_and_the_last_state_stays(monkeypatch):
    monkeypatch.setattr(following, "_SILENT_SECONDS", 0.05)
    with pytest.raises(Missing, match=r"has not answered for .* the job may go on"):
        follow(Recorded(scontrol=[RUNNING, AWAY]), RECORD, print)
    assert records.find(None).state == "running"


def test_a_job_that_ends_while_the_controller_is_away_has_ended():
    slurm = Recorded({f"{DIRECTORY}/exit-code": b"0\n"}, scontrol=[RUNNING, AWAY])
    assert follow(slurm, RECORD, print).state == "completed"


def test_a_job_that_slurm_has_forgotten_is_not_waited_for():
    slurm = Recorded(scontrol=[RUNNING, GONE])
    assert follow(slurm, RECORD, print).state == "unknown"
    assert len([words for words in slurm.ran if words[0] == "scontrol"]) == 2


def test_a_state_of_a_later_slurm_is_waited_through():
    slurm = Recorded(scontrol=[*[RUNNING.replace("RUNNING", "TELEPORTED")] * 4, DONE])
    assert follow(slurm, RECORD, print).state == "completed"


@pytest.mark.parametrize(("left", "state"), [(b"0\n", "completed"), (b"4\n", "failed")])
def test_the_scripts_own_status_counts_where_nobody_remembers(left, state):
    slurm = Recorded({f"{DIRECTORY}/exit-code": left}, scontrol=[GONE])
    assert follow(slurm, msgspec.structs.replace(RECORD, state="running"), print).state == state
