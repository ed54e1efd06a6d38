"""Test job scripts on a real Slurm: Slurm accepts every field, and jobs stop on request and resume later."""

import json
import re
import time

import pytest

from tests.services.jobs import last_record, on_login
from tests.services.program import toolkit
from tests.unit.launch.site_scripts import FOLDER

# The user's program resumes: its second run finds the file of the first run.
STOPS = (
    'echo begun; if [ -e "$TOOLKIT_JOB_DIR/half" ]; then echo "goes on"; exit 0; fi; '
    'until [ -e "$TOOLKIT_JOB_DIR/stop-asked" ]; do sleep 0.2; done; '
    'echo half > "$TOOLKIT_JOB_DIR/half"; exit 75'
)


@pytest.fixture
def plain(cluster, training_sif):
    return ["--cluster", cluster.name, "--image", str(training_sif), "--no-preflight", "--no-follow"]


def submitted(*words):
    toolkit("launch", *words)
    return last_record()


def shown(cluster, record, wanted, seconds=90):
    deadline = time.monotonic() + seconds
    while True:
        said = on_login(cluster, f"scontrol show job {record['id']}")
        if re.search(wanted, said) or time.monotonic() > deadline:
            return said
        time.sleep(0.5)


def output(cluster, record):
    return on_login(cluster, f"cat {record['spec']['directory']}/output.log")


def begun(cluster, record):
    deadline = time.monotonic() + 90
    while "begun" not in output(cluster, record):
        assert time.monotonic() < deadline
        time.sleep(0.5)


def asked_to_stop(cluster, record):
    """Wait until the ranks run, and send the signal that Slurm sends before the time limit."""
    begun(cluster, record)
    on_login(cluster, f"scancel --signal=USR1 --batch {record['id']}")


def test_slurm_takes_a_job_with_every_field_that_it_can_have(cluster, plain, tmp_path):
    job = tmp_path / "job.yaml"
    job.write_text(
        "name: every-field\nnodes: 2\nranks_per_node: 1\ncpus_per_rank: 1\ntime: 2:00\npartition: debug\n"
        "nodelist: node[1-2]\nexclusive: true\nbegin: now\nmail_type: NONE\nmail_user: nobody\nwarning: 30\n"
        "requeue: true\nsbatch: ['--comment=\"a b\"', --nice]\nerror: error-%j.log\nworkdir: /tmp\n"
        "env: {GREETING: 'it''s $HOME'}\ncommand: [sh, -c, 'pwd; echo \"$GREETING\"; echo bad >&2']\n"
    )
    done = toolkit("launch", *plain[:-1], "--job", str(job))
    record = last_record()
    assert record["state"] == "completed"
    assert "it's $HOME" in done.stdout
    assert "/tmp" in done.stdout
    assert "bad" in on_login(cluster, f"cat {record['spec']['directory']}/error-{record['id']}.log")
    said = on_login(cluster, f"scontrol show job {record['id']}")
    assert "Comment=a b" in said
    assert re.search(r"OverSubscribe=NO|Shared=0", said)


def test_a_job_that_is_asked_to_stop_goes_on_in_the_queue(cluster, plain):
    record = submitted(*plain, "--requeue", "--warning", "60", "--", "sh", "-c", STOPS)
    asked_to_stop(cluster, record)
    assert "Requeue=1 Restarts=1" in shown(cluster, record, "JobState=COMPLETED", 150)
    said = output(cluster, record)
    assert "stop requested" in said
    assert "resumes" in said
    assert json.loads(toolkit("jobs", "show", record["key"], "--json").stdout)["state"] == "completed"


def test_a_chain_goes_on_in_a_job_behind_it(cluster, plain):
    record = submitted(*plain, "--chain", "2", "--warning", "60", "--", "sh", "-c", STOPS)
    asked_to_stop(cluster, record)
    shown(cluster, record, "JobState=FAILED")
    following = re.search(
        r"stopped with a checkpoint; job (\d+) resumes from the last checkpoint", output(cluster, record)
    )
    assert following
    assert "JobState=COMPLETED" in shown(cluster, {"id": following[1]}, "JobState=(COMPLETED|FAILED)")
    assert "goes on" in output(cluster, record)
    assert on_login(cluster, f"cat {record['spec']['directory']}/restarts").strip() == "1"


def test_what_is_cancelled_stays_away(cluster, plain):
    record = submitted(*plain, "--chain", "2", "--warning", "60", "--", "sh", "-c", STOPS)
    begun(cluster, record)
    toolkit("jobs", "cancel", record["key"])
    shown(cluster, record, "JobState=CANCELLED")
    time.sleep(5)  # time in which a wrong second job would appear
    assert on_login(cluster, "squeue --noheader").strip() == ""
    assert "goes on" not in output(cluster, record)


def test_slurm_takes_the_script_of_its_site_as_it_stands(cluster):
    script = (FOLDER / "virtual.sh").read_text()
    said = on_login(cluster, "cat > site.sh && sbatch --test-only site.sh", stdin=script)
    assert re.search(r"Job \d+ to start at", said), said
