"""Test jobs with the training image: several launch modes, trainers, and users' programs."""

import json
import re
import shlex
import subprocess
import time

import pytest

from tests.services.jobs import last_record, launched, on_login
from tests.services.program import toolkit

# A user's script: it does not import toolkit, has an option, and averages a number over its ranks.
TRAIN = """
import argparse
from mpi4py import MPI

options = argparse.ArgumentParser()
options.add_argument("--lr", type=float)
options = options.parse_args()
world = MPI.COMM_WORLD
gradient = world.allreduce(float(world.rank)) / world.size
print(f"rank {world.rank} of {world.size}: {options.lr * gradient}", flush=True)
"""


@pytest.fixture(scope="module")
def there(on):
    launched(on, "--no-preflight", "--", "true")
    return last_record()["spec"]["image"]


@pytest.mark.parametrize("mode", ["srun-pmix", "mpirun-container", "gloo"])
def test_mnist_is_trained_on_two_nodes(on, few, mode, tmp_path):
    data = ("--data", str(few), "--mode", mode)
    done = launched(on, "mnist", "--nodes", "2", *data, "--", "--epochs", "1")
    assert "2 ranks on 2 nodes" in done.stdout
    record = last_record()
    assert (record["state"], record["mode"], record["predicted"]) == ("completed", mode, "ok")
    shown = toolkit("report", record["key"], "--output", str(tmp_path)).stdout
    result = json.loads((tmp_path / "result.json").read_text())
    assert (result["world_size"], result["nodes"], result["mode"]) == (2, 2, mode)
    assert f"{result['test_accuracy']:.4f}" in shown
    assert (tmp_path / "training.png").read_bytes().startswith(b"\x89PNG")


def test_a_script_of_ones_own_runs_with_its_options(cluster, there):
    folder = f"/work/{cluster.user}/mine"
    on_login(cluster, f"mkdir -p {folder} && cat > {folder}/train.py", TRAIN)
    words = ["toolkit", "launch", "--image", there, "--nodes", "2", "--bind", folder]
    said = on_login(cluster, shlex.join([*words, "--", "python", f"{folder}/train.py", "--lr", "0.5"]))
    assert {f"rank {rank} of 2: 0.25" for rank in (0, 1)} <= set(re.findall(r"rank \d of .*", said)), said


def test_a_trainer_of_ones_own_is_launched_by_its_file(on):
    launched(on, "docs/examples/spirals.py", "--nodes", "2", "--", "--epochs", "1", "--noise", "0.2")
    record = last_record()
    assert record["state"] == "completed"
    assert "spirals: horovod, 2 ranks on 2 nodes" in toolkit("jobs", "logs", record["key"]).stdout


JOB = """
name: from-a-file
nodes: 2
time: 5:00
command: [sh, -c, 'echo here is $SLURM_PROCID']
"""


def test_a_job_file_says_all_of_a_job(on, tmp_path):
    file = tmp_path / "job.yaml"
    file.write_text(JOB)
    launched(on, "--no-preflight", str(file))
    record = last_record()
    assert record["state"] == "completed"
    assert (record["spec"]["name"], record["spec"]["nodes"]) == ("from-a-file", 2)
    assert "here is 1" in toolkit("jobs", "logs", record["key"]).stdout


def test_a_script_for_a_cluster_that_is_far_away_is_printed(training_sif):
    words = ("launch", "mnist", "--site", "juwels", "--image", str(training_sif), "--dry-run")
    script = toolkit(*words).stdout
    subprocess.run(["shellcheck", "-"], input=script, text=True, check=True)
    assert "#SBATCH" in script
    assert "singularity exec" in script or "apptainer exec" in script


def test_ranks_find_each_other_without_slurm(cluster, there):
    words = ["toolkit", "launch", "--local", "--image", there, "--ranks-per-node", "2", "--", "true"]
    said = on_login(cluster, f"cd /work/{cluster.user} && {shlex.join(words)} 2>&1; echo status $?")
    assert re.search(r"preflight: 2 ranks on 1 node, .*; messages arrive", said)
    assert said.splitlines()[-1] == "status 0"


def test_a_mode_that_is_predicted_to_fail_is_refused_with_the_reason(on, mnist):
    before = toolkit("jobs", "list").stdout
    done = launched(on, "mnist", "--nodes", "2", "--mode", "srun-pmi2", ok=False)
    assert done.returncode == 1
    assert "toolkit predicts 'singletons' for mode srun-pmi2" in done.stderr
    assert "srun-pmix" in done.stderr
    assert toolkit("jobs", "list").stdout == before


def test_forced_on_it_fails_as_predicted_and_the_cause_is_named(on, mnist):
    done = launched(on, "mnist", "--nodes", "2", "--mode", "srun-pmi2", "--force", ok=False)
    assert done.returncode == 1
    assert re.search(r"^ *cause: .* \(image-lacks-pmi2\)$", done.stderr, re.MULTILINE)
    assert "hint: Launch with `toolkit launch --mode srun-pmix`" in done.stderr
    assert "you forced mode srun-pmi2, although toolkit predicted 'singletons'" in done.stderr
    record = last_record()
    assert record["forced"]
    assert record["state"] == "failed"


def test_a_rank_that_fails_ends_the_job_and_its_last_lines_are_shown(on):
    code = (
        "import os, sys, time\n"
        "if os.environ['SLURM_PROCID'] == '1':\n"
        "    print('rank one is unwell', flush=True); sys.exit(7)\n"
        "time.sleep(300)"
    )
    began = time.monotonic()
    done = launched(on, "--nodes", "2", "--no-preflight", "--", "python", "-c", code, ok=False)
    assert done.returncode == 1
    assert time.monotonic() - began < 120
    assert re.search(r"rank 1 on node2 failed first: Exited with exit code 7", done.stderr)
    assert "rank one is unwell" in done.stderr
    # srun exits with the highest exit status: 7 of the failing rank, or 143 of a rank that srun killed.
    assert last_record()["exit_code"] in {7, 143}


def test_hostile_words_pass_through_sbatch_srun_and_singularity_unharmed(on):
    words = [
        "a b",
        "$(id)",
        "`id`",
        "'",
        '"',
        "\\",
        "*",
        "~",
        "!x",
        "é☃",
        "two\nlines",
        "-n",
        "; id",
        "$HOME",
        "",
    ]
    code = "import json, sys, os; print('words:' + json.dumps([sys.argv[1:], os.environ['V']]))"
    value = "a,b=$(id) 'x' \\ \"y\""
    done = launched(on, "--no-preflight", "--env", f"V={value}", "--", "python", "-c", code, *words)
    line = next(x for x in done.stdout.splitlines() if x.startswith("words:"))
    assert json.loads(line.removeprefix("words:")) == [words, value]


def test_what_sbatch_refuses_is_told_and_leaves_no_record(on, cluster):
    before = toolkit("jobs", "list").stdout
    known = launched(on, "--partition", "nowhere", "--", "true", ok=False)
    assert known.returncode == 1
    assert "--partition nowhere: unknown partition" in known.stderr
    done = launched(on, "--force", "--partition", "nowhere", "--", "true", ok=False)
    assert done.returncode == 1
    assert f"sbatch on cluster {cluster.name} rejected the job: " in done.stderr
    assert "nvalid partition" in done.stderr
    assert toolkit("jobs", "list").stdout == before


def test_dry_run_prints_a_script_and_changes_nothing(on, mnist):
    before = toolkit("jobs", "list").stdout
    done = launched(on, "mnist", "--nodes", "2", "--dry-run")
    assert done.stdout.startswith("#!/bin/bash\n")
    assert "--mpi=pmix" in done.stdout
    subprocess.run(["shellcheck", "-"], input=done.stdout, text=True, check=True)
    assert toolkit("jobs", "list").stdout == before


def test_what_runs_on_the_login_node_starts_ranks_on_all_nodes(cluster, on):
    launched(on, "--no-preflight", "--", "true")
    there = last_record()["spec"]["image"]
    inside = toolkit(
        "cluster", "exec", "--name", cluster.name, "--user", cluster.user, "--",
        "sh", "-lc", f"cd /work/{cluster.user} && toolkit launch --image {there} --nodes 2 -- hostname",
    )  # fmt: skip
    assert re.search(r"preflight: .*2", inside.stdout)
    assert "node1" in inside.stdout
    assert "[rank 1] node2" in inside.stdout
    listed = toolkit(
        "cluster",
        "exec",
        "--name",
        cluster.name,
        "--user",
        cluster.user,
        "--",
        "toolkit",
        "jobs",
        "list",
        "--json",
    )
    assert json.loads(listed.stdout)["jobs"][-1]["state"] == "completed"


def test_a_script_that_was_printed_runs_with_plain_sbatch(cluster, training_sif):
    script = toolkit(
        "launch",
        "--cluster",
        cluster.name,
        "--image",
        str(training_sif),
        "--site",
        "virtual",
        "--nodes",
        "2",
        "--dry-run",
        "--",
        "hostname",
    ).stdout
    # A launch copies the image to the cluster, where the next command needs it.
    toolkit("launch", "--cluster", cluster.name, "--image", str(training_sif), "--no-preflight", "--", "true")
    said = on_login(
        cluster, "mkdir -p plain && cd plain && cat > job.sh && sbatch --wait job.sh; cat output.log", script
    )
    assert re.search(r"preflight: 2 ranks on 2 nodes", said), said
    assert "0: node1" in said
    assert "1: node2" in said
