"""Test Horovod without MPI on a real cluster: ranks find each other through Gloo under srun."""

import json
import re
import shlex

import pytest

from tests.services.jobs import last_record, launched, on_login
from tests.services.program import toolkit
from toolkit.engine.planning.proposal import GLOO_FILE
from toolkit.launch.jobscript.script import PREFLIGHT, job_script
from toolkit.model.job import JobSpec
from toolkit.model.prediction import Plan

WRAPPER = ("python", "-m", "toolkit.trainers.gloo", "--")


@pytest.fixture(scope="module")
def there(on):
    launched(on, "--no-preflight", "--", "true")
    return last_record()["spec"]["image"]


def submitted(cluster, folder, script, *options):
    place = f"/work/{cluster.user}/{folder}"
    # Without a job script of toolkit, ranks need a folder on all nodes for their secret.
    submit = shlex.join(["env", f"TOOLKIT_JOB_DIR={place}", "sbatch", "--wait", *options, "job.sh"])
    line = f"mkdir -p {place} && cd {place} && rm -f output.log && cat > job.sh && {submit}; cat output.log"
    return on_login(cluster, line, stdin=script)


def srun(image, *options, command=("python", "-m", "toolkit.trainers.preflight"), tasks=2):
    words = ["srun", "--mpi=none", "--label", f"--ntasks={tasks}", *options, "singularity", "exec", image]
    return shlex.join(
        [*words, *WRAPPER, *command, *(["--tasks", str(tasks)] if command[0] == "python" else [])]
    )


@pytest.mark.parametrize("each", [1, 2])
def test_horovod_trains_mnist_on_two_nodes_without_mpi(on, mnist, tmp_path, each):
    done = launched(on, "mnist", "--nodes", "2", "--ranks-per-node", str(each), "--mode", "gloo")
    ranks = 2 * each
    assert re.search(rf"preflight: {ranks} ranks on 2 nodes, Gloo over eth0; messages arrive", done.stdout)
    record = last_record()
    assert (record["state"], record["exit_code"], record["mode"]) == ("completed", 0, "gloo")
    assert record["predicted"] == "ok"
    toolkit("report", record["key"], "--output", str(tmp_path))
    result = json.loads((tmp_path / "result.json").read_text())
    assert (result["world_size"], result["nodes"], result["mode"]) == (ranks, 2, "gloo")
    assert result["test_accuracy"] >= 0.97


def test_ranks_on_one_node_find_each_other(on):
    done = launched(
        on, "--nodes", "1", "--ranks-per-node", "2", "--mode", "gloo", "--", "printenv", "HOROVOD_RANK"
    )
    assert "preflight: 2 ranks on 1 node, Gloo over lo; messages arrive" in done.stdout
    assert sorted(done.stdout.splitlines())[:2] == ["0", "[rank 1] 1"]


def test_one_rank_needs_nobody(on):
    done = launched(on, "--nodes", "1", "--mode", "gloo", "--", "hostname")
    assert "preflight: 1 rank on 1 node, Gloo over lo" in done.stdout


def test_without_an_interface_one_rank_of_open_mpi_5_works_as_predicted(on):
    done = launched(on, "--nodes", "1", "--mode", "srun-none", "--", "true")
    assert "preflight: 1 rank on 1 node, Open MPI 5" in done.stdout
    shown = toolkit("jobs", "show", last_record()["key"]).stdout
    assert "--mpi=none" in shown
    assert '"forced": false' in shown


def test_a_rank_that_fails_ends_the_others_with_its_exit_code(on):
    code = "import os, sys, time; time.sleep(1 if os.environ['HOROVOD_RANK'] == '0' else 300); sys.exit(7)"
    done = launched(on, "--nodes", "2", "--mode", "gloo", "--", "python", "-c", code, ok=False)
    assert done.returncode == 1
    assert re.search(r"rank 0 on node1 failed first: Exited with exit code 7", done.stderr)


def test_an_image_that_is_not_of_toolkit_is_brought_the_wrapper(cluster, there):
    folder = f"/work/{cluster.user}/carried"
    spec = JobSpec(
        name="carried",
        image=there,
        command=(*PREFLIGHT, "--tasks", "2"),
        directory=folder,
        nodes=2,
        binds=(folder,),
        preflight=False,
    )
    plan = Plan(mode="gloo", launcher=("srun", "--mpi=none"), wrapper=("python3", GLOO_FILE, "--"))
    said = submitted(cluster, "carried", job_script(spec, plan, "as for an image of others"))
    assert "preflight: 2 ranks on 2 nodes, Gloo over eth0; messages arrive" in said


def test_steps_that_share_nodes_do_not_meet(cluster, there):
    steps = " &\n".join(srun(there, "--overlap", "--nodes=2") for _ in range(3))
    script = f"#!/bin/bash\n#SBATCH --nodes=2 --ntasks=2 --output=output.log\n{steps} &\nwait\n"
    said = submitted(cluster, "steps", script)
    assert len(re.findall(r"^0: preflight: 2 ranks on 2 nodes, Gloo", said, re.MULTILINE)) == 3
    assert "gloo:" not in said


@pytest.mark.parametrize("distribution", ["block", "cyclic"])
def test_nodes_may_have_different_numbers_of_ranks(cluster, there, distribution):
    options = ("--overcommit", "--nodes=2", f"--distribution={distribution}")
    script = (
        f"#!/bin/bash\n#SBATCH --nodes=2 --ntasks=2 --output=output.log\n{srun(there, *options, tasks=3)}\n"
    )
    said = submitted(cluster, "uneven", script)
    assert re.search(r"^0: preflight: 3 ranks on 2 nodes, Gloo over eth0", said, re.MULTILINE), said


def test_a_rank_that_never_comes_is_named_in_one_line(cluster, there):
    late = "import os, time\nif os.environ['SLURM_PROCID'] == '1': time.sleep(60)\n"
    late += f"os.execvp('python', {[*WRAPPER, 'true']!r})"
    words = ["srun", "--mpi=none", "--label", "--kill-on-bad-exit=1", "singularity", "exec", there]
    step = shlex.join([*words, "env", "HOROVOD_START_TIMEOUT=2", "python", "-c", late])
    said = submitted(
        cluster, "late", f"#!/bin/bash\n#SBATCH --nodes=2 --ntasks=2 --output=output.log\n{step}\n"
    )
    assert re.findall(r"^\d: gloo: .*$", said, re.MULTILINE) == [
        "0: gloo: rank 1 did not reach rank 0 on node1 within 2 s"
    ]


def test_a_signal_to_the_step_reaches_every_command(cluster, there):
    code = (
        "import signal, time\n"
        "got = []\n"
        "signal.signal(signal.SIGUSR1, lambda *_: got.append(1))\n"
        "print('begun', flush=True)\n"
        "deadline = time.monotonic() + 60\n"
        "while not got and time.monotonic() < deadline: time.sleep(0.1)\n"
        "time.sleep(2)\n"
        "print('signals', len(got), flush=True)"
    )
    script = (
        "#!/bin/bash\n#SBATCH --nodes=2 --ntasks=2 --output=output.log\n"
        'until [ "$(grep -c begun output.log)" -eq 2 ]; do sleep 0.5; done && '
        'scancel --signal=USR1 "$SLURM_JOB_ID.0" &\n'
        f"{srun(there, command=('python3', '-c', code))}\n"
    )
    said = submitted(cluster, "signals", script)
    # Slurm may repeat the signal if a node answers slowly.
    counts = re.findall(r"^\d: signals (\d)$", said, re.MULTILINE)
    assert len(counts) == 2, said
    assert "0" not in counts, said


def test_the_record_keeps_the_wrapper(on):
    launched(on, "--nodes", "2", "--mode", "gloo", "--no-preflight", "--", "true")
    assert last_record()["plan"]["wrapper"] == list(WRAPPER)
