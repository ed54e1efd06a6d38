"""Test jobs that wait, restart, lose their connection and resume, on a real Slurm behind a real sshd."""

import json
import os
import signal
import subprocess
import time
import uuid

import pytest

from tests.services.jobs import STOPS_ONCE, as_root, cut, in_background, record_of
from tests.services.program import ROOT, toolkit
from toolkit.errors import Missing
from toolkit.launch.tracking import jobs, records
from toolkit.launch.tracking.reasons import waits_for_turn
from toolkit.model.progress import Silent
from toolkit.run.command import Command
from toolkit.run.patience import PatientRunner
from toolkit.run.remote.ssh import SshRunner
from toolkit.run.remote.ssh_shared import SharedRunner, shared_runner
from toolkit.run.stage import Parcel, stage


@pytest.fixture(scope="module")
def login(cluster):
    # The fixture retries, because a test may also cut the connection of this runner.
    runner = PatientRunner(SshRunner("login", cluster.ssh_config), print)
    yield runner
    runner.close()


@pytest.fixture(scope="module")
def on(box):
    return box


class Cutting(Silent):
    """Progress output that cuts the SSH connection when an upload reports each text in ``at``."""

    def __init__(self, cluster, at):
        self.cluster, self.at, self.steps = cluster, list(at), []

    def step(self, text):
        self.steps.append(text)

    def detail(self, text):
        if self.at and text == self.at[0]:
            self.at.pop(0)
            cut(self.cluster)


# Connections that break


def test_an_upload_that_is_cut_twice_goes_on_and_arrives_whole(cluster, tmp_path):
    source = tmp_path / "data"
    source.write_bytes(os.urandom(60_000_000))
    target = f"/work/ada/{uuid.uuid4().hex}/it"
    tell = Cutting(cluster, ["30%", "60%"])
    runner = SshRunner("login", cluster.ssh_config)
    try:
        assert stage(runner, [Parcel.of(source, target)], tell) == 1
        assert runner.read(target) == source.read_bytes()
    finally:
        runner.close()
    assert len([step for step in tell.steps if "lost" in step and "trying again" in step]) == 2
    assert len([step for step in tell.steps if step.startswith("Resuming data after")]) == 2


def test_following_that_is_cut_goes_on_and_no_line_is_lost_or_comes_twice(cluster, on):
    line = "i=0; while [ $i -lt 14 ]; do echo tick $i; sleep 1; i=$((i+1)); done"
    words = toolkit.words("launch", *on, "--", "sh", "-c", line)
    process = subprocess.Popen(
        words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1
    )
    assert process.stdout
    lines = []
    for text in process.stdout:
        lines.append(text.rstrip("\n"))
        if lines[-1] in ("tick 3", "tick 8"):
            cut(cluster)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 0, said
    assert [text for text in lines if text.startswith("tick")] == [f"tick {n}" for n in range(14)]
    assert said.count("toolkit reconnects") == 2


def test_a_submission_whose_answer_is_cut_off_is_found_and_is_not_made_twice(cluster, login, on):
    """Replace the user's sbatch with a slow script, so that there is time to cut the connection."""
    folder = f"/work/ada/{uuid.uuid4().hex}"
    slow = f'#!/bin/sh\necho >> {folder}/calls\n/usr/bin/sbatch "$@"; status=$?; sleep 9; exit $status\n'
    login.write(f"{folder}/sbatch", slow.encode(), 0o755)
    profile = login.read("/home/ada/.bashrc")
    login.write("/home/ada/.bashrc", f"export PATH={folder}:$PATH\n".encode() + profile)
    name = f"once{uuid.uuid4().hex[:6]}"
    words = toolkit.words("launch", *on, "--no-follow", "--json", "--name", name, "--", "sleep", "1")
    try:
        process = subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        deadline = time.monotonic() + 60
        while name not in as_root(cluster, "squeue", "-h", "-o", "%j")[1]:
            assert time.monotonic() < deadline
            time.sleep(0.2)
        cut(cluster)
        cut_at = time.monotonic()
        out, said = process.communicate(timeout=60)
        assert time.monotonic() - cut_at < 9  # sbatch sleeps 9 s, so it has not answered yet
    finally:
        login.write("/home/ada/.bashrc", profile)
    assert process.returncode == 0, said
    assert login.read(f"{folder}/calls") == b"\n"
    record = json.loads(out)
    assert record["id"]
    assert as_root(cluster, "squeue", "-h", "-t", "all", "-n", name, "-o", "%i")[1].split() == [record["id"]]


# Jobs that continue


def test_a_job_that_stops_in_time_is_requeued_and_followed_to_its_end(cluster, on):
    record = in_background(on, STOPS_ONCE, "--requeue", "--chain", "2")
    # Slurm delays a requeued job for two minutes, so that nodes do not confuse it with the previous run.
    done = toolkit("jobs", "logs", "--follow", record["key"], timeout=400)
    assert [x for x in done.stdout.splitlines() if x in ("first", "second")] == ["first", "second"]
    assert "waits for a restart" in done.stderr
    now = record_of(record["key"])
    assert (now["state"], now["restarts"], now["numbers"]) == ("completed", 1, [record["id"]])


def test_a_job_that_submits_its_successor_is_followed_under_the_new_number(on):
    record = in_background(on, STOPS_ONCE, "--no-requeue", "--chain", "1")
    done = toolkit("jobs", "logs", "--follow", record["key"], timeout=200)
    assert [x for x in done.stdout.splitlines() if x in ("first", "second")] == ["first", "second"]
    now = record_of(record["key"])
    assert (now["state"], now["restarts"], len(now["numbers"])) == ("completed", 1, 2)
    assert now["numbers"][0] == record["id"] != now["id"]


def test_a_task_of_an_array_goes_on_without_the_others(on):
    line = f'if [ "$SLURM_ARRAY_TASK_ID" = 1 ]; then {STOPS_ONCE.strip()}; else echo once; fi'
    record = in_background(on, line, "--array", "0-2", "--no-requeue", "--chain", "1")
    assert toolkit("jobs", "wait", record["key"], timeout=200).returncode == 0
    now = record_of(record["key"])
    assert [(task["index"], task["state"]) for task in now["tasks"]] == [(n, "completed") for n in range(3)]
    said = toolkit("jobs", "logs", record["key"]).stdout
    assert [said.count(word) for word in ("once", "first", "second")] == [2, 1, 1]


# Waiting, listing, cancelling


def test_a_job_that_is_held_says_why_it_waits_and_what_to_do(cluster, on):
    record = in_background(on, "true", "--begin", "now+1hour")
    as_root(cluster, "scontrol", "hold", record["id"])
    process = subprocess.Popen(
        toolkit.words("jobs", "logs", "--follow", record["key"]),
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stderr
    line = process.stderr.readline()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert "will not start by itself" in line
    toolkit("jobs", "cancel", record["key"])


def test_a_job_that_may_go_on_does_not_once_its_owner_cancelled_it(cluster, on):
    record = in_background(on, "sleep 300", "--requeue", "--chain", "3", "--warning", "60", "--time", "10")
    deadline = time.monotonic() + 30
    while record_of(record["key"])["state"] != "running":
        assert time.monotonic() < deadline
        time.sleep(0.5)
    toolkit("jobs", "cancel", record["key"])
    assert toolkit("jobs", "wait", record["key"], ok=False).returncode == 1
    time.sleep(3)
    told = as_root(cluster, "scontrol", "-o", "show", "job", record["id"])[1]
    assert "JobState=CANCELLED" in told
    assert "Restarts=0" in told


def test_the_place_in_the_queue_is_told(cluster, on, login):
    alone = ("--exclusive", "--nodelist", "node1")
    busy = [in_background(on, "sleep 300", *alone) for _ in range(3)]
    try:
        record = records.find(busy[2]["key"])
        deadline = time.monotonic() + 90
        while not waits_for_turn((told := jobs.query(login, record.id)).reason):
            assert time.monotonic() < deadline, (told, as_root(cluster, "squeue"), as_root(cluster, "sinfo"))
            time.sleep(0.5)
        assert jobs.place_in_queue(login, record, jobs.query(login, record.id).partition) == (2, 2)
    finally:
        toolkit("jobs", "cancel", *(record["key"] for record in busy))


# A connection that ssh shares


@pytest.fixture
def open_one(cluster, tmp_path):
    config = tmp_path / "config"
    socket = f"/tmp/shared-{uuid.uuid4().hex[:8]}"
    text = cluster.ssh_config.read_text()
    config.write_text(f"Host *\n    ControlPath {socket}\n{text}")
    subprocess.run(["ssh", "-F", str(config), "-fNM", "login"], check=True, timeout=30)
    yield config
    subprocess.run(["ssh", "-F", str(config), "-O", "exit", "login"], capture_output=True, timeout=30)


def test_a_shared_connection_is_used_and_does_all_that_ours_does(open_one, tmp_path):
    runner = shared_runner("login", open_one)
    assert isinstance(runner, SharedRunner)
    folder = f"/work/ada/{uuid.uuid4().hex}/deep er"
    runner.write(f"{folder}/small", b"0123456789", 0o600)
    assert (runner.read(f"{folder}/small", 4), runner.read(f"{folder}/none")) == (b"456789", b"")
    source = tmp_path / "data"
    source.write_bytes(os.urandom(20_000_001))
    steps = []
    assert stage(runner, [Parcel.of(source, f"{folder}/it")], Silent()) == 1
    runner.send(source, f"{folder}/it", lambda done, total: steps.append(done))
    assert steps == [20_000_001]
    assert runner.read(f"{folder}/it") == source.read_bytes()
    done = toolkit("probe", "--host", "login", "--ssh-config", str(open_one), "--json")
    assert json.loads(done.stdout)["place"] == "login"


def test_a_shared_connection_that_is_closed_is_told_and_no_other_is_opened(open_one):
    runner = shared_runner("login", open_one)
    subprocess.run(["ssh", "-F", str(open_one), "-O", "exit", "login"], check=True, capture_output=True)
    with pytest.raises(Missing, match="the shared SSH connection is closed") as caught:
        runner.run(Command.of("true"))
    assert caught.value.fix == f"open the connection again: ssh -F {open_one} login"
    assert shared_runner("login", open_one) is None
