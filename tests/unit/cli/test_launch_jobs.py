"""``toolkit jobs`` and the following of a job, against recorded answers of Slurm."""

import json

import msgspec
import pytest
from click.testing import CliRunner

from tests.unit.cli.test_launch import Told
from tests.unit.launch.examples import RECORD
from tests.unit.launch.recorded import AWAY, DONE, FAILED, RUNNING, Recorded
from toolkit.cli import following, places
from toolkit.cli.jobs import command
from toolkit.errors import BadInput, CheckFailed, Missing
from toolkit.launch import follow, records

OUTPUT = f"{RECORD.spec.directory}/output.log"
LOST = Missing("login: cannot run scontrol: the SSH connection was lost", fix="run the same command again")


@pytest.fixture(autouse=True)
def _own_state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(follow, "_FIRST_QUERY", 0.02)
    monkeypatch.setattr(follow, "_OUTPUT_SECONDS", 0.01)
    monkeypatch.setattr(follow, "_SETTLE_SECONDS", 0.02)


@pytest.fixture
def reached(monkeypatch):
    """Say which runner each place has; a place without one is not reached."""
    runners, opened = {}, []

    def open_runner(host, cluster, config=None):
        opened.append(host or cluster)
        if (host or cluster) not in runners:
            raise Missing(f"{host or cluster}: cannot be reached over SSH")
        return runners[host or cluster]

    monkeypatch.setattr(places, "open_runner", open_runner)
    runners["opened"] = opened
    return runners


def save(key="mnist-1", **changes):
    record = msgspec.structs.replace(RECORD, key=key, **{"host": "login", "state": "running", **changes})
    records.save(record)
    return record


def jobs(*words):
    return CliRunner().invoke(command, words, obj={"verbose": False, "quiet": False})


def test_the_list_shows_what_became_of_the_jobs_over_one_connection_a_place(reached):
    for key, number in (("a", "1"), ("b", "2"), ("c", "3")):
        save(key, id=number)
    save("d", state="completed", host="never")
    reached["login"] = Recorded(scontrol=[DONE, FAILED, RUNNING])
    lines = jobs("list").stdout.splitlines()[-4:]
    assert [state for line in lines for state in ("completed", "failed", "running") if state in line] == [
        "completed", "failed", "running", "completed",
    ]  # fmt: skip
    assert reached["opened"] == ["login"]
    assert records.find("a").state == "completed"


def test_a_place_that_is_not_reached_is_marked_and_no_error(reached):
    save("a", host="away")
    save("b")
    save("c", host="silent")
    reached["login"], reached["silent"] = Recorded(scontrol=[DONE]), Recorded(scontrol=[AWAY])
    done = jobs("list")
    assert done.exit_code == 0
    away, there, silent = done.stdout.splitlines()[-3:]
    assert "running (not reached)" in away
    assert "completed" in there
    assert "running (not reached)" in silent
    listed = json.loads(jobs("list", "--json").stdout)
    assert listed["schema"] == "toolkit.jobs/1"
    assert [(job["key"], job["reached"]) for job in listed["jobs"]] == [
        ("a", False),
        ("b", True),
        ("c", False),
    ]


def test_a_damaged_record_is_named_and_the_others_are_listed(reached):
    save("a", state="completed")
    (records.folder("b")).mkdir()
    (records.folder("b") / "record.json").write_text("{")
    done = jobs("list")
    assert "mnist" not in done.stderr
    assert f"passed over {records.folder('b')}/record.json: not a job record" in done.stderr
    assert done.stdout.splitlines()[-1].startswith("a ")


def test_show_has_json_and_the_output_of_a_job_that_nobody_followed(reached):
    record = save()
    reached["login"] = Recorded({OUTPUT: b"the end\n"}, scontrol=[FAILED])
    assert json.loads(jobs("show", "--json").stdout)["state"] == "failed"
    del reached["login"]
    assert jobs("logs", record.key).stdout == "the end\n"


def test_the_reason_of_a_failure_outlives_the_place(reached):
    save()
    said = b"srun: error: node2: task 1: Exited with exit code 3\n1: no data\n"
    reached["login"] = Recorded({OUTPUT: said}, scontrol=[FAILED])
    jobs("list")
    del reached["login"]
    error = jobs("wait").exception
    assert isinstance(error, CheckFailed)
    assert any("no data" in line for line in error.detail)


def test_logs_of_a_running_job_are_those_so_far(reached):
    save()
    reached["login"] = Recorded({OUTPUT: b"so far\n"}, scontrol=[RUNNING])
    assert jobs("logs").stdout == "so far\n"


@pytest.mark.parametrize(("answer", "state", "code"), [(DONE, "completed", 0), (FAILED, "failed", 1)])
def test_wait_prints_the_record_as_json_however_the_job_ended(reached, answer, state, code):
    save()
    reached["login"] = Recorded(scontrol=[RUNNING, answer])
    for _ in ("followed", "kept"):
        done = jobs("wait", "--json")
        assert json.loads(done.stdout)["state"] == state
        assert (done.exit_code != 0) == bool(code)


def test_cancel_prints_the_record_as_json(reached):
    save()
    ended = RUNNING.replace("RUNNING", "CANCELLED")
    reached["login"] = Recorded(scancel=[""], scontrol=[RUNNING, ended])
    assert json.loads(jobs("cancel", "--json").stdout)["state"] == "cancelled"
    assert "has ended already: cancelled" in jobs("cancel").stdout


def test_a_connection_that_is_lost_does_not_invite_a_second_job():
    record = save()
    with pytest.raises(Missing, match="job 7 goes on, but recorded is not reached any more") as caught:
        following.watch_job(Recorded(scontrol=[RUNNING, LOST]), record, Told())
    assert caught.value.fix == "toolkit jobs logs --follow mnist-1"
    assert any("the SSH connection was lost" in line for line in caught.value.detail)


def test_a_controller_that_is_away_is_said_once():
    tell = Told()
    following.watch_job(Recorded(scontrol=[RUNNING, AWAY, AWAY, DONE]), save(), tell)
    assert len([step for step in tell.steps if "does not answer" in step]) == 1


def test_no_job_is_told_with_what_to_do():
    error = jobs("show").exception
    assert isinstance(error, BadInput)
    assert "toolkit launch" in error.fix
