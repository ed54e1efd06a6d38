"""Test following a job with recorded answers of Slurm; tests/full uses a real Slurm."""

import socket

import msgspec
import pytest

from tests.unit.launch.examples import RECORD
from tests.unit.launch.recorded import AWAY, DONE, FAILED, GONE, RUNNING, Recorded
from tests.unit.tables import every_row
from toolkit.errors import Lost, Missing
from toolkit.launch.tracking import follow as following
from toolkit.launch.tracking import records
from toolkit.launch.tracking.follow import follow
from toolkit.run import patience

DIRECTORY = RECORD.spec.directory


@pytest.fixture(autouse=True)
def _own_state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    records.save(RECORD)
    monkeypatch.setattr(following, "_OUTPUT_SECONDS", 0.01)
    monkeypatch.setattr(following, "_FIRST_QUERY", 0.02)
    monkeypatch.setattr(following, "_LAST_QUERY", 0.02)
    monkeypatch.setattr(following, "_SETTLE_SECONDS", 0.02)
    monkeypatch.setattr(following, "_METRICS_SECONDS", 0.0)
    monkeypatch.setattr(patience, "_FIRST_PAUSE", 0.01)


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
    assert states == ["answered", *["silent"] * 5, "answered", "answered"]


def test_a_controller_that_stays_away_is_given_up_and_the_last_state_stays(monkeypatch):
    monkeypatch.setattr(following, "_SILENT_SECONDS", 0.05)
    with pytest.raises(Missing, match=r"has not answered for .* the job may still run"):
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


WAITING = (
    "JobId=7 JobState=PENDING Reason={} Restarts={} StartTime=Unknown Partition=batch "
    "ExitCode=0:0 NodeList=(null)"
)
STOPPED = FAILED.replace("ExitCode=3:0", "ExitCode=75:0 EndTime=2026-11-21T20:00:00")
LOST = Lost("login: the SSH connection was lost")


def test_a_job_that_slurm_starts_again_is_followed_on():
    again = RUNNING.replace("ExitCode", "Restarts=1 ExitCode")
    slurm = Recorded(scontrol=[RUNNING, WAITING.format("BeginTime", 1), again, DONE])
    seen = []
    record = follow(slurm, RECORD, print, lambda s: seen.append((s.state, s.restarts)))
    assert seen == [("running", None), ("pending", 1), ("running", 1), ("completed", None)]
    assert (record.state, record.restarts) == ("completed", 1)


def test_a_job_that_had_itself_submitted_again_is_followed_under_its_new_number():
    spec = msgspec.structs.replace(RECORD.spec, chain=2)
    queue = f"7|{DIRECTORY}\n8|{DIRECTORY}\n9|/elsewhere\n"
    slurm = Recorded(scontrol=[RUNNING, STOPPED, RUNNING, DONE], squeue=[queue])
    told = []
    first = msgspec.structs.replace(RECORD, spec=spec)
    record = follow(slurm, first, print, on_resume=told.append)
    assert (record.state, record.id, record.numbers, record.restarts) == ("completed", "8", ("7", "8"), 1)
    assert [r.id for r in told] == ["8"]
    assert ("scontrol", "--oneliner", "show", "job", "8") in slurm.ran
    assert records.find("8").state == "completed"


def test_the_end_of_one_run_is_not_that_of_the_job_while_slurm_does_not_say_what_follows():
    queue = f"7|{DIRECTORY}\n8|{DIRECTORY}\n"
    slurm = Recorded(scontrol=[RUNNING, STOPPED, RUNNING, DONE], squeue=[AWAY, AWAY, queue])
    told = []
    record = follow(slurm, msgspec.structs.replace(RECORD, numbers=("7",)), print, on_resume=told.append)
    assert [one.id for one in told] == ["8"]
    assert record.state == "completed"


def test_a_job_that_stopped_for_time_and_is_not_started_again_has_ended():
    record = follow(Recorded(scontrol=[RUNNING, STOPPED], squeue=[f"7|{DIRECTORY}\n"]), RECORD, print)
    assert (record.state, record.exit_code, record.ended) == ("failed", 75, "2026-11-21T20:00:00")


def test_a_job_that_stopped_for_time_while_the_controller_is_away_is_waited_for():
    spec = msgspec.structs.replace(RECORD.spec, requeue=True)
    slurm = Recorded(
        {f"{DIRECTORY}/exit-code": b"75\n"},
        scontrol=[RUNNING, AWAY, AWAY, WAITING.format("BeginTime", 1), DONE],
    )
    assert follow(slurm, msgspec.structs.replace(RECORD, spec=spec), print).state == "completed"


def test_a_status_of_the_run_before_does_not_hurry_the_questions_while_the_job_waits(monkeypatch):
    monkeypatch.setattr(following, "_LAST_QUERY", 0.3)
    monkeypatch.setattr(following, "_FIRST_QUERY", 0.1)
    waiting = WAITING.format("BeginTime", 1)
    slurm = Recorded({f"{DIRECTORY}/exit-code": b"75\n"}, scontrol=[waiting, waiting, DONE])
    looked = []
    slurm.read = lambda target, offset=0, limit=None: looked.append(target) or b""
    follow(slurm, RECORD, print)
    assert not any(target.endswith("exit-code") for target in looked)


def test_the_place_in_the_queue_comes_with_the_answer_of_a_job_that_waits_for_its_turn():
    slurm = Recorded(
        scontrol=[WAITING.format("Priority", 0), WAITING.format("JobHeldUser", 0), DONE],
        squeue=["3|Resources\n7|Priority\n"],
    )
    seen = []
    follow(slurm, RECORD, print, lambda s: seen.append(s.place))
    assert seen == [(2, 2), (0, 0), (0, 0)]
    assert any("--partition=batch" in words for words in slurm.ran)


def test_metrics_are_handed_over_whole_while_the_job_runs():
    slurm = Recorded({f"{DIRECTORY}/metrics.jsonl": b"1\n"}, scontrol=[RUNNING, RUNNING, DONE])
    seen = []

    def on_metrics(content):
        seen.append(content)
        slurm.files[f"{DIRECTORY}/metrics.jsonl"] = b"2\n"

    follow(slurm, RECORD, print, on_metrics=on_metrics)
    assert seen[0] == b"1\n"
    assert seen[-1] == b"2\n"


def test_a_connection_that_breaks_is_made_anew_and_no_line_comes_twice():
    slurm = Recorded({f"{DIRECTORY}/output.log": b"one\n"}, scontrol=[RUNNING, LOST, LOST, RUNNING, DONE])
    read, broken = slurm.read, []

    def breaking(target, offset=0, limit=None):
        if offset and len(broken) < 2:
            broken.append(target)
            raise LOST
        slurm.files[f"{DIRECTORY}/output.log"] = b"one\ntwo\n"
        return read(target, offset, limit)

    slurm.read = breaking
    lines, lost = [], []
    assert follow(slurm, RECORD, lines.append, on_lost=lost.append).state == "completed"
    assert lines == ["one", "two"]
    assert len(lost) == 2


def test_a_connection_that_stays_away_is_given_up(monkeypatch):
    monkeypatch.setattr(following, "_SILENT_SECONDS", 0.05)
    with pytest.raises(Lost, match="connection was lost"):
        follow(Recorded(scontrol=[RUNNING, LOST]), RECORD, print)


@pytest.fixture
def local(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    spec = msgspec.structs.replace(RECORD.spec, directory=str(folder))
    record = msgspec.structs.replace(
        RECORD, id="", spec=spec, state="running", started="2026-11-21T20:00:00", nodes=socket.gethostname()
    )
    records.save(record)
    return record, folder / "process"


class Growing(Recorded):
    """A fake job that writes one line before each read of its output, and ends after the third line."""

    def __init__(self, record, on_end):
        super().__init__()
        self._output, self._on_end, self._lines = f"{record.spec.directory}/output.log", on_end, 0

    def read(self, target, offset=0, limit=None):
        if target == self._output and self._lines < 3:
            self._lines += 1
            self.files[target] = b"".join(b"%d\n" % n for n in range(self._lines))
            if self._lines == 3:
                self._on_end(self)
        return super().read(target, offset, limit)


@every_row(("left", "state"), [(b"0\n", "completed"), (b"4\n", "failed")])
def test_a_job_of_this_machine_is_followed_until_its_script_left_a_status(local, left, state):
    record, _ = local

    def end(here):
        here.files[f"{record.spec.directory}/exit-code"] = left

    here, lines, states = Growing(record, end), [], []
    ended = follow(here, record, lines.append, lambda s: states.append((s.state, s.answer)))
    assert (lines, states) == (["0", "1", "2"], [("running", "answered")])
    assert (ended.state, ended.exit_code) == (state, int(left))
    assert here.ran == []  # toolkit ran no Slurm command


def test_a_job_of_this_machine_whose_process_is_gone_has_failed(local):
    record, process = local
    here = Growing(record, lambda _: process.write_text("1 1 a-boot-before\n"))
    lines = []
    assert follow(here, record, lines.append).state == "failed"
    assert lines == ["0", "1", "2"]


def test_a_job_of_this_machine_that_was_cancelled_meanwhile_is_told_so(local):
    record, _ = local

    def end(here):
        records.update(record, state="cancelled")
        here.files[f"{record.spec.directory}/exit-code"] = b"143\n"

    assert follow(Growing(record, end), record, print).state == "cancelled"


@every_row(("size", "waits"), [(None, True), (b"output 8\n", False), (b"output 9\n", True)])
def test_toolkit_waits_for_late_output_unless_it_has_all_bytes_that_the_node_wrote(monkeypatch, size, waits):
    files = {f"{DIRECTORY}/output.log": b"one\ntwo\n"}
    if size is not None:
        files[f"{DIRECTORY}/start-times"] = b"script 1795694000.5\n" + size
    slept = []
    monkeypatch.setattr(following, "_SETTLE_SECONDS", 0.05)
    monkeypatch.setattr(following.time, "sleep", lambda seconds: slept.append(seconds) or real(seconds))
    lines = []
    assert follow(Recorded(files, scontrol=[DONE]), RECORD, lines.append).state == "completed"
    assert lines == ["one", "two"]
    assert bool(slept) is waits


def test_signs_in_the_files_of_a_job_ask_slurm_before_the_next_query_is_due(monkeypatch):
    monkeypatch.setattr(following, "_FIRST_QUERY", 60.0)
    monkeypatch.setattr(following, "_AGAIN_SECONDS", 0.02)
    files = {f"{DIRECTORY}/output.log": b"one\n", f"{DIRECTORY}/exit-code": b"0\n"}
    waiting = WAITING.format("Priority", 0)
    slurm = Recorded(files, scontrol=[waiting, RUNNING, RUNNING, RUNNING, DONE], squeue=[""])
    states, began = [], following.time.monotonic()
    follow(slurm, RECORD, print, lambda s: states.append(s.state))
    assert states == ["pending", "running", "running", "running", "completed"]
    # The script has ended, so the pauses between the queries are 0, 0.02 and 0.04 s.
    assert 0.06 <= following.time.monotonic() - began < 60


def test_output_of_a_job_that_still_waits_asks_slurm_once_more(monkeypatch):
    monkeypatch.setattr(following, "_FIRST_QUERY", 0.2)
    monkeypatch.setattr(following, "_LAST_QUERY", 0.2)
    waiting = WAITING.format("BeginTime", 1)
    slurm = Recorded({f"{DIRECTORY}/output.log": b"old\n"}, scontrol=[waiting, waiting, DONE])
    began = following.time.monotonic()
    follow(slurm, RECORD, print)
    assert following.time.monotonic() - began >= 0.2


real = following.time.sleep
