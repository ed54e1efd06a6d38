"""Test ``toolkit jobs`` and how toolkit follows a job, with recorded answers of Slurm."""

import datetime as dt
import json
import signal
import socket
import subprocess
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from tests.unit.cli.test_launch import Told
from tests.unit.image.sifs import DATA, sif
from tests.unit.launch.examples import RECORD
from tests.unit.launch.recorded import AWAY, DONE, FAILED, GONE, RUNNING, Recorded
from tests.unit.tables import every_row
from toolkit.cli.frame.since import since
from toolkit.cli.jobs import command
from toolkit.errors import BadInput, CheckFailed, Lost, Missing
from toolkit.files import hash_file
from toolkit.job import places
from toolkit.job.running import follow as following
from toolkit.job.running import wait as waiting
from toolkit.launch.tracking import follow, records
from toolkit.run import patience
from toolkit.run.local import LocalRunner

OUTPUT = f"{RECORD.spec.directory}/output.log"
LOST = Lost("login: cannot run scontrol: the SSH connection was lost", fix="run the same command again")
STOPPED = FAILED.replace("ExitCode=3:0", "ExitCode=75:0")


@pytest.fixture(autouse=True)
def _own_state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(follow, "_FIRST_QUERY", 0.02)
    monkeypatch.setattr(follow, "_OUTPUT_SECONDS", 0.01)
    monkeypatch.setattr(follow, "_SETTLE_SECONDS", 0.02)
    monkeypatch.setattr(follow, "_METRICS_SECONDS", 0.0)
    monkeypatch.setattr(follow, "_SILENT_SECONDS", 0.5)
    monkeypatch.setattr(patience, "_FIRST_PAUSE", 0.05)
    monkeypatch.setattr(waiting, "_FIRST_PAUSE", 0.01)


@pytest.fixture
def reached(monkeypatch):
    """Return a dictionary of the runners of hosts; a host without a runner is unreachable."""
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
        "completed", "running", "failed", "completed",
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
    silent, there, away = done.stdout.splitlines()[-5:-2]
    assert "running ?" in away
    assert "completed" in there
    assert "running ?" in silent
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
    assert f"skipped {records.folder('b')}/record.json: not a job record" in done.stderr
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


def test_the_list_has_json_without_its_name(reached):
    save("a", state="completed")
    assert json.loads(jobs("--json").stdout) == json.loads(jobs("list", "--json").stdout)
    error = jobs("--json", "show").exception
    assert isinstance(error, BadInput)
    assert error.fix == "write: `toolkit jobs show --json`"


def test_show_in_a_pipe_says_that_json_has_to_be_asked_for(reached):
    save("a", state="completed")
    assert "add --json" in jobs("show").stderr
    assert "add --json" not in jobs("show", "--json").stderr


def test_the_last_lines_of_the_output(reached):
    save()
    reached["login"] = Recorded({OUTPUT: b"1\n2\n3\n4\n"}, scontrol=[RUNNING])
    assert jobs("logs", "-n", "2").stdout == "3\n4\n"
    assert jobs("logs", "--tail", "9").stdout == "1\n2\n3\n4\n"
    assert isinstance(jobs("logs", "-n", "2", "-f").exception, BadInput)


def test_a_cancelled_job_is_no_riddle(reached):
    save()
    said = b"slurmstepd: error: *** STEP 7.0 ON node1 CANCELLED AT 2026-01-01T00:00:00 ***\n"
    reached["login"] = Recorded({OUTPUT: said}, scontrol=[RUNNING.replace("RUNNING", "CANCELLED")])
    error = jobs("wait").exception
    assert isinstance(error, CheckFailed)
    assert error.message.endswith(" was cancelled")
    assert not error.detail


def test_logs_of_a_running_job_are_those_so_far(reached):
    save()
    reached["login"] = Recorded({OUTPUT: b"so far\n"}, scontrol=[RUNNING])
    assert jobs("logs").stdout == "so far\n"


@every_row(("answer", "state", "code"), [(DONE, "completed", 0), (FAILED, "failed", 1)])
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
    assert "has already ended: cancelled" in jobs("cancel").stdout


def test_a_connection_that_is_lost_does_not_invite_a_second_job():
    record = save()
    with pytest.raises(Missing, match="recorded is unreachable; job 7 may still run") as caught:
        following.watch_job(Recorded(scontrol=[RUNNING, LOST]), record, Told())
    assert caught.value.fix == "when the host answers again: `toolkit jobs logs --follow mnist-1`"
    assert any("the SSH connection was lost" in line for line in caught.value.detail)


def test_a_controller_that_is_away_is_said_once():
    tell = Told()
    following.watch_job(Recorded(scontrol=[RUNNING, AWAY, AWAY, DONE]), save(), tell)
    assert len([step for step in tell.steps if "does not answer" in step]) == 1


def test_no_job_is_told_with_what_to_do():
    error = jobs("show").exception
    assert isinstance(error, BadInput)
    assert "toolkit launch" in error.fix


def test_the_list_is_narrowed_by_state_site_and_time(reached):
    now = dt.datetime.now(dt.UTC)
    long_ago = (now - dt.timedelta(days=3)).isoformat()
    save("a", state="completed", submitted=long_ago)
    save("b", state="failed", submitted=now.isoformat())
    save("c", state="completed", host="other", submitted=now.isoformat())

    def keys(*words):
        return [job["key"] for job in json.loads(jobs("list", "--json", *words).stdout)["jobs"]]

    assert keys("--state", "completed") == ["a", "c"]
    assert keys("--state", "completed", "--state", "failed") == ["a", "b", "c"]
    assert keys("--site", "login") == ["a", "b"]
    assert keys("--since", "2h") == ["b", "c"]
    assert keys("--since", "1w", "--site", "other") == ["c"]
    assert isinstance(jobs("list", "--since", "yesterday").exception, BadInput)


def test_the_state_that_is_asked_for_is_that_of_now(reached):
    save("a")
    reached["login"] = Recorded(scontrol=[DONE])
    assert "a " in jobs("list", "--state", "completed").stdout


@every_row(
    ("text", "meant"),
    [
        ("90m", "2026-11-21T16:30:00+01:00"),
        ("2h", "2026-11-21T16:00:00+01:00"),
        ("1w", "2026-11-14T18:00:00+01:00"),
        ("2026-11-20", "2026-11-20T00:00:00+01:00"),
        ("2026-11-20T12:00:00+00:00", "2026-11-20T13:00:00+01:00"),
    ],
)
def test_spans_and_dates_are_read(text, meant):
    now = dt.datetime.fromisoformat("2026-11-21T18:00:00+01:00")
    assert since(text, now) == dt.datetime.fromisoformat(meant)


@every_row("text", ["", "2", "h", "-1h", "999999w", "2026-13-01", "1h; id"])
def test_what_is_no_time_is_refused(text):
    with pytest.raises(BadInput, match="--since"):
        since(text, dt.datetime.now(dt.UTC))


def test_show_as_text_tells_where_it_is_and_why_it_failed(reached):
    save(numbers=("5", "7"), restarts=1, started="2026-11-21T19:00:12", nodes="node[1-2]")
    said = b"srun: error: node2: task 1: Exited with exit code 3\n1: no data\n"
    reached["login"] = Recorded({OUTPUT: said}, scontrol=[FAILED])
    text = jobs("show", "--text").stdout
    for part in (
        "failed, started again once, exit code 3",
        "7 (earlier: 5) on this machine",
        "2 nodes, 1 rank per node, time limit ",
        f"{RECORD.spec.directory}/job.sh",
        "srun-pmix (predicted: ok)",
        "sha256:00",
        "2026-11-21 19:00, the cluster's time",
        "node[1-2]",
        "no data",
        "fix: ",
    ):
        assert part in text


def test_waiting_for_several_tells_each_and_fails_with_all_that_failed(reached):
    save("a", id="1")
    save("b", id="2", host="other")
    save("c", state="failed", exit_code=4)
    reached["login"], reached["other"] = Recorded(scontrol=[RUNNING, DONE]), Recorded(scontrol=[FAILED])
    done = jobs("wait", "a", "b", "c")
    assert done.stdout.splitlines() == ["a completed", "b failed", "c failed"]
    assert isinstance(done.exception, CheckFailed)
    assert done.exception.message == "2 of 3 jobs did not complete"
    assert any("exit code 4" in line for line in done.exception.detail)


def test_waiting_for_several_says_once_why_they_do_not_start(reached):
    save("a", id="1")
    save("b", id="2")
    save("c", id="3")
    held = "1|PENDING|AssocGrpCPUMinutesLimit||\n2|PENDING|AssocGrpCPUMinutesLimit||\n3|PENDING|Priority||\n"
    reached["login"] = Recorded(squeue=[held, held, ""], scontrol=[DONE])
    done = jobs("wait", "a", "b", "c")
    assert done.exit_code == 0, done.exception
    why = [line for line in done.stderr.splitlines() if "waits" in line]
    assert len(why) == 1
    assert (
        "Job 1 waits: the account of the job has used up its computing time (AssocGrpCPUMinutesLimit); ask"
        in why[0]
    )


def test_waiting_for_any_ends_with_the_first_and_its_outcome(reached):
    save("a", id="1")
    save("b", id="2", host="other")
    reached["login"], reached["other"] = Recorded(scontrol=[RUNNING]), Recorded(scontrol=[RUNNING, DONE])
    done = jobs("wait", "--any", "a", "b", "--json")
    assert done.exit_code == 0
    assert json.loads(done.stdout)["key"] == "b"
    both = jobs("wait", "b", "a", "--any")
    assert both.stdout == "b completed\n"


def test_waiting_for_several_survives_a_place_that_is_away_for_a_while(reached):
    save("a", id="1")
    save("b", id="2")
    reached["login"] = Recorded(squeue=[LOST, ""], scontrol=[LOST, AWAY, DONE])
    done = jobs("wait", "a", "b")
    assert done.exit_code == 0, done.exception
    assert "trying again" in done.stderr


def test_waiting_for_a_place_that_stays_away_is_given_up(reached, monkeypatch):
    monkeypatch.setattr(waiting, "_PATIENCE_SECONDS", 0.05)
    save("a", id="1")
    save("b", id="2")
    reached["login"] = Recorded(squeue=[AWAY], scontrol=[AWAY])
    error = jobs("wait", "a", "b").exception
    assert isinstance(error, Lost)
    assert "does not answer" in error.message


def test_jobs_that_slurm_has_forgotten_are_not_waited_for(reached):
    save("a", id="1")
    save("b", id="2")
    reached["login"] = Recorded(squeue=[""], scontrol=[GONE])
    assert jobs("wait", "a", "b").stdout == "a unknown\nb unknown\n"


def test_several_are_cancelled(reached):
    save("a", id="1")
    save("b", id="2", state="completed")
    ended = RUNNING.replace("RUNNING", "CANCELLED")
    reached["login"] = Recorded(scancel=[""], scontrol=[RUNNING, ended])
    said = jobs("cancel", "a", "b").stdout.splitlines()
    assert said == ["job 1 is cancelled", "job 2 has already ended: completed"]
    listed = json.loads(jobs("cancel", "a", "b", "--json").stdout)["jobs"]
    assert [job["state"] for job in listed] == ["cancelled", "completed"]


def cancelled_around(reached):
    save("a", id="1")
    save("b", id="", state="unknown")
    save("c", id="3", host="away")
    save("d", id="4")
    ended = RUNNING.replace("RUNNING", "CANCELLED")
    reached["login"] = Recorded(scancel=["", ""], squeue=[""], scontrol=[RUNNING, ended, RUNNING, ended])


def test_one_that_cannot_be_cancelled_keeps_no_other_going(reached):
    cancelled_around(reached)
    done = jobs("cancel", "a", "b", "c", "d")
    assert done.stdout.splitlines() == ["job 1 is cancelled", "job 4 is cancelled"]
    assert isinstance(done.exception, CheckFailed)
    assert done.exception.message == "2 of 4 jobs were not cancelled"
    assert [line.partition(":")[0] for line in done.exception.detail] == ["b", "c"]


def test_what_became_of_all_is_printed_before_the_error(reached):
    cancelled_around(reached)
    done = jobs("cancel", "a", "c", "--json")
    listed = json.loads(done.stdout)["jobs"]
    assert [(job["key"], job["state"], job["reached"]) for job in listed] == [
        ("a", "cancelled", True),
        ("c", "running", False),
    ]
    assert isinstance(done.exception, Missing)
    assert done.exception.message == "c was not cancelled: away: cannot be reached over SSH"


def test_the_only_one_that_cannot_be_cancelled_is_told_as_it_is(reached):
    cancelled_around(reached)
    done = jobs("cancel", "b", "--json")
    assert done.stdout == ""
    assert "b: the number of the job in Slurm is unknown" in done.exception.message


def test_a_job_that_stopped_for_time_is_told_how_to_go_on_and_does(reached):
    record = save(image_digest=f"sha256:{'0' * 64}")
    script = f"{RECORD.spec.directory}/job.sh"
    found = f"{'0' * 64}  {RECORD.spec.image}\0"
    reached["login"] = Recorded(
        {script: b"x"}, scontrol=[STOPPED], squeue=[""], sbatch=["9\n"], sha256sum=[found]
    )
    error = jobs("wait").exception
    assert "stopped before its time limit" in error.message
    assert error.fix.endswith(f"toolkit jobs resume {record.key}`")
    assert "job 9 is submitted" in jobs("resume").stdout
    assert records.find("9").numbers == ("7", "9")


def test_the_tasks_of_an_array_are_shown_with_what_each_wrote(reached):
    spec = msgspec.structs.replace(RECORD.spec, array="0-1", output="output-%a.log")
    record = save(spec=spec)
    folder = RECORD.spec.directory
    files = {f"{folder}/{i}/metrics.jsonl": METRICS for i in range(2)}
    files |= {f"{folder}/output-{i}.log": f"said {i}\n".encode() for i in range(2)}
    tasks = [
        f"JobId=7 ArrayTaskId={i} JobState={state} NodeList=node1 ExitCode=0:0"
        for i, state in enumerate(("COMPLETED", "RUNNING"))
    ]
    both = ["\n".join(tasks)] * 2
    done = ["\n".join(tasks).replace("RUNNING", "COMPLETED")]
    reached["login"] = Recorded(files, scontrol=[*both, *done])
    shown = jobs("show", "--text").stdout
    assert (
        "tasks       0  completed, exit code 0 on node1; epoch 2 of 2, 1,200 images/s, about 5 s left"
        in shown
    )
    assert "\n            1  running on node1; epoch 2 of 2" in shown
    said = "==> task 0 <==\nsaid 0\n==> task 1 <==\nsaid 1\n"
    assert jobs("logs").stdout == said
    assert [task["state"] for task in json.loads(jobs("show", "--json").stdout)["tasks"]] == ["completed"] * 2
    reached.pop("login")  # the record of a finished job is on this machine
    assert jobs("logs").stdout == said
    assert jobs("show", "--text").stdout.count("1,200 images/s") == 2
    assert records.find(record.key).state == "completed"


def save_local(folder, script, **changes):
    (folder / "job.sh").write_text(script)
    image = folder / "tiny.sif"
    image.write_bytes(sif((DATA / "tiny.gzip").read_bytes()))
    changes.setdefault("image_digest", f"sha256:{hash_file(image)}")
    spec = msgspec.structs.replace(RECORD.spec, directory=str(folder), image=str(image))
    ran = {"nodes": socket.gethostname(), "started": "2026-11-21T10:00:00", "state": "failed"}
    return save(id="", host=None, spec=spec, **{**ran, **changes})


@every_row("words", [(), ("--json",)])
def test_a_job_of_this_machine_goes_on_here(reached, tmp_path, words):
    reached[None] = LocalRunner()
    record = save_local(tmp_path, "echo went on\n")
    done = jobs("resume", record.key, *words)
    assert done.exit_code == 0, done.exception
    kept = records.find(record.key)
    assert (kept.state, kept.exit_code, kept.restarts) == ("completed", 0, 1)
    assert (tmp_path / "output.log").read_text() == "went on\n"
    assert json.loads(done.stdout)["state"] == "completed" if words else "went on" in done.output


def test_a_job_of_this_machine_that_fails_again_is_told(reached, tmp_path):
    reached[None] = LocalRunner()
    save_local(tmp_path, "exit 4\n")
    error = jobs("resume").exception
    assert isinstance(error, CheckFailed)
    assert "ended as failed, exit code 4" in error.message


def test_a_job_of_this_machine_that_runs_is_cancelled_here(reached, tmp_path):
    reached[None] = LocalRunner()
    record = save_local(tmp_path, "", state="running")
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as rank:
        began = Path(f"/proc/{rank.pid}/stat").read_text().rpartition(")")[2].split()[19]
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        (tmp_path / "process").write_text(f"{rank.pid} {began} {boot}\n")
        said = jobs("cancel").stdout
    assert said == f"job {record.key} is cancelled\n"
    assert rank.returncode == -signal.SIGTERM
    assert "has already ended: cancelled" in jobs("cancel").stdout


METRICS = (
    b'{"record": "header", "epochs": 2}\n'
    b'{"record": "epoch", "epoch": 1, "seconds": 5.0, "images_per_second": 1200.0}\n'
)


def test_progress_is_told_in_a_log_once_an_epoch(monkeypatch):
    monkeypatch.setattr(following, "_PLAIN_SECONDS", 0.0)
    tell = Told()
    slurm = Recorded({f"{RECORD.spec.directory}/metrics.jsonl": METRICS}, scontrol=[RUNNING, RUNNING, DONE])
    following.watch_job(slurm, save(), tell)
    told = [step for step in tell.steps if "epoch" in step]
    assert told == ["Job 7: epoch 2 of 2, 1,200 images/s, about 5 s left"]


@every_row(("trainer", "content"), [("mnist", METRICS), ("mnist", METRICS[:30]), ("", METRICS)])
def test_who_left_a_checkpoint_is_told_how_to_go_on_from_it(trainer, content):
    record = save(spec=msgspec.structs.replace(RECORD.spec, trainer=trainer), state="failed", exit_code=137)
    records.keep(record, records.METRICS, content)
    told = [line for line in following.failure(record).detail if "checkpoint" in line]
    assert bool(told) == (trainer == "mnist" and content == METRICS)
    assert all(line.endswith(f"toolkit jobs resume {record.key}") for line in told)


def test_a_restart_is_told_and_is_no_failure():
    waiting_again = (
        "JobState=PENDING Reason=BeginTime Restarts=1 StartTime=2026-11-21T19:02:00 "
        "ExitCode=0:0 Partition=batch NodeList=(null)"
    )
    tell = Told()
    record = following.watch_job(Recorded(scontrol=[RUNNING, waiting_again, DONE]), save(), tell)
    assert record.state == "completed"
    assert any("waits for a restart" in step and "19:02" in step for step in tell.steps)


def test_a_successor_is_followed_and_named():
    record = save(spec=msgspec.structs.replace(RECORD.spec, chain=3))
    queue = f"7|{RECORD.spec.directory}\n8|{RECORD.spec.directory}\n"
    tell = Told()
    following.watch_job(Recorded(scontrol=[STOPPED, RUNNING, DONE], squeue=[queue]), record, tell)
    assert any("job 8 resumes from the checkpoint" in step for step in tell.steps)
    assert any(step.startswith("Job 8 runs on") for step in tell.steps)


def test_a_lost_connection_that_comes_back_is_told_and_no_more():
    tell = Told()
    record = following.watch_job(Recorded(scontrol=[RUNNING, LOST, LOST, DONE]), save(), tell)
    assert record.state == "completed"
    assert len([step for step in tell.steps if "toolkit reconnects" in step]) == 1


def test_output_has_json_too_while_a_job_runs_and_after_its_end(reached):
    save()
    reached["login"] = Recorded({OUTPUT: b"so far\n"}, scontrol=[RUNNING, RUNNING, DONE])
    told = json.loads(jobs("logs", "--json").stdout)
    assert (told["schema"], told["state"], told["output"]) == ("toolkit.output/1", "running", "so far\n")
    told = json.loads(jobs("logs", "--follow", "--json").stdout)
    assert (told["state"], told["output"]) == ("completed", "so far\n")
