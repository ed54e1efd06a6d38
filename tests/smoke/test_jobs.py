"""Test that toolkit follows, cancels, resumes and waits for jobs, and that an interrupt stops no job."""

import json
import os
import re
import signal
import subprocess
import time

from tests.services.jobs import STOPS_ONCE, in_background, last_record, record_of
from tests.services.program import ROOT, toolkit


def test_ctrl_c_leaves_the_job_and_says_how_to_come_back(box):
    words = ["launch", *box, "--", "sh", "-c", "echo started; sleep 300"]
    process = subprocess.Popen(
        toolkit.words(*words), cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout
    assert any("started" in line for line in iter(process.stdout.readline, ""))
    os.kill(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=30)
    assert process.returncode == 130
    record = last_record()
    assert f"`toolkit jobs logs --follow {record['key']}`" in said
    assert json.loads(toolkit("jobs", "show", record["key"], "--json").stdout)["state"] == "running"
    toolkit("jobs", "cancel", record["key"])
    time.sleep(2)
    assert toolkit("jobs", "wait", record["key"], ok=False).returncode == 1


def test_one_that_stopped_and_is_not_started_again_says_how_to_go_on_and_does(box):
    record = in_background(box, STOPS_ONCE)
    done = toolkit("jobs", "wait", record["key"], ok=False)
    assert done.returncode == 1
    assert "stopped before its time limit" in done.stderr
    command = re.search(r"toolkit (jobs resume [^\s`]+)", done.stderr)[1].split()
    toolkit(*command)
    assert toolkit("jobs", "wait", record["key"]).returncode == 0
    assert "second" in toolkit("jobs", "logs", record["key"]).stdout


def test_several_are_waited_for_listed_and_cancelled(box):
    quick, bad, slow = (in_background(box, line) for line in ("true", "exit 4", "sleep 300"))
    first = toolkit("jobs", "wait", slow["key"], quick["key"], "--any")
    assert first.stdout == f"{quick['key']} completed\n"
    both = toolkit("jobs", "wait", quick["key"], bad["key"], ok=False)
    assert both.returncode == 1
    assert f"{bad['key']} failed" in both.stdout
    assert "exit code 4" in both.stderr
    listed = toolkit("jobs", "list", "--state", "failed", "--since", "10m", "--json").stdout
    assert bad["key"] in [job["key"] for job in json.loads(listed)["jobs"]]
    said = toolkit("jobs", "cancel", slow["key"], quick["key"]).stdout
    assert "is cancelled" in said
    assert "has already ended: completed" in said
    now = record_of(bad["key"])
    assert re.fullmatch(r"node\d", now["nodes"])
    assert now["started"] <= now["ended"]


def test_a_job_is_followed_line_by_line_to_its_end_and_its_output_is_kept(box):
    process = subprocess.Popen(
        toolkit.words("launch", *box, "--", "sh", "-c", "echo begun; sleep 6; echo over"),
        cwd=ROOT, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout
    came = {line.strip(): time.monotonic() for line in iter(process.stdout.readline, "")}
    process.communicate(timeout=30)
    assert process.returncode == 0
    assert came["over"] - came["begun"] > 3
    assert toolkit("jobs", "logs", last_record()["key"]).stdout.endswith("over\n")
