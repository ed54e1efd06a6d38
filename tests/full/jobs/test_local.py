"""Test jobs without Slurm, with real Apptainer and MPI, on the login node of a cluster."""

import json
import re

import pytest

from tests.services.jobs import last_record, launched, on_login
from tests.services.program import toolkit

PRINT = "import os; print('rank', os.environ.get('OMPI_COMM_WORLD_RANK', os.environ.get('HOROVOD_RANK')))"


@pytest.fixture(scope="module")
def there(cluster, training_sif):
    launched(["--cluster", cluster.name, "--image", str(training_sif)], "--no-preflight", "--", "true")
    return last_record()["spec"]["image"]


def local(cluster, there, *words, before="", after=""):
    import shlex

    line = shlex.join(["toolkit", "launch", "--local", "--image", there, *words])
    said = on_login(cluster, f"cd /work/{cluster.user} && {before} {line} 2>&1; echo status $?; {after}")
    return said, int(re.search(r"^status (\d+)$", said, re.MULTILINE)[1])


@pytest.mark.parametrize("mode", ["mpirun-container", "gloo"])
def test_ranks_find_each_other_without_slurm(cluster, there, mode):
    said, code = local(cluster, there, "--ranks-per-node", "3", "--mode", mode, "--", "python", "-c", PRINT)
    assert code == 0, said
    assert re.search(r"preflight: 3 ranks on 1 node, .*; messages arrive", said)
    assert sorted(re.findall(r"^rank \d$", said, re.MULTILINE)) == ["rank 0", "rank 1", "rank 2"]


def test_the_record_is_as_any_jobs(cluster, there):
    local(cluster, there, "--no-preflight", "--", "sh", "-c", "exit 7")
    record = json.loads(on_login(cluster, "toolkit jobs list --json"))["jobs"][-1]
    assert (record["state"], record["exit_code"], record["id"]) == ("failed", 7, "")
    assert record["mode"] == "mpirun-container"
    # The stored job script needs only bash, so run it again without toolkit.
    again = on_login(cluster, f"bash {record['spec']['directory']}/job.sh; echo status $?")
    assert "status 7" in again


@pytest.mark.parametrize("mode", ["mpirun-container", "gloo"])
def test_ctrl_c_ends_every_rank(cluster, there, mode):
    code = "import time; print('begun', flush=True); time.sleep(76543)"
    said, _ = local(
        cluster, there, "--no-preflight", "--copies", "--ranks-per-node", "2", "--mode", mode,
        "--", "python", "-c", code,
        before="env --default-signal=INT timeout --foreground -s INT 15",
        after="sleep 1; echo left; pgrep -u \"$(id -u)\" -f '^python.*time.sleep.76543'",
    )  # fmt: skip
    assert said.count("begun") == 2
    assert "all ranks of" in said
    assert said.splitlines()[-1] == "left"


def test_a_mode_of_slurm_is_refused(cluster, there):
    said, code = local(cluster, there, "--mode", "srun-pmix", "--", "true")
    assert code == 2
    assert "modes for --local: mpirun-container," in said


def test_the_first_failing_rank_ends_the_job(cluster, there):
    fail = "import os, sys, time\nif os.environ['HOROVOD_RANK'] == '1': sys.exit(9)\ntime.sleep(300)"
    said, code = local(
        cluster,
        there,
        "--no-preflight",
        "--ranks-per-node",
        "2",
        "--mode",
        "gloo",
        "--",
        "python",
        "-c",
        fail,
    )
    assert code == 1
    assert "exit code 9" in said


def test_here_without_apptainer_it_says_what_to_do_instead(training_sif, monkeypatch):
    import shutil

    if shutil.which("apptainer") or shutil.which("singularity"):
        monkeypatch.setenv("PATH", "/usr/bin:/bin")
    done = toolkit("launch", "--local", "--image", str(training_sif), "--", "true", ok=False)
    assert done.returncode == 3
    assert "--cluster virtual" in done.stderr
