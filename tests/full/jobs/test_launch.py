"""Test a launch on a real cluster, from ``toolkit doctor`` to the job's result."""

import json
import os
import re
import signal
import subprocess
import time

from tests.services.jobs import last_record, launched, on_login
from tests.services.program import ROOT, toolkit


def run_folder(script):
    """Return the job folder that a script mounts; the folder exists only after the launch."""
    return re.search(r"--bind (\S*/runs/\S+)", script)[1]


def test_horovod_trains_mnist_on_two_nodes(on, mnist, tmp_path):
    done = launched(on, "mnist", "--nodes", "2")
    assert re.search(r"preflight: .*2", done.stdout)
    record = last_record()
    assert (record["state"], record["exit_code"], record["mode"]) == ("completed", 0, "srun-pmix")
    assert record["predicted"] == "ok"
    shown = toolkit("report", record["key"], "--output", str(tmp_path))
    result = json.loads((tmp_path / "result.json").read_text())
    assert result["test_accuracy"] >= 0.97
    assert (result["world_size"], result["nodes"], result["epochs"]) == (2, 2, 2)
    assert result["images_per_second"] > 0
    assert result["mode"] == "srun-pmix"
    assert result["image_digest"] == record["image_digest"]
    assert (tmp_path / "training.png").read_bytes().startswith(b"\x89PNG")
    assert f"{result['test_accuracy']:.4f}" in shown.stdout
    assert toolkit("jobs", "logs", record["key"]).stdout.count("preflight:") == 1


def test_a_setting_whose_effect_nobody_measured_is_not_called_ok(on):
    done = launched(on, "--nodes", "2", "--env", "OMPI_MCA_btl=openib", "--", "true", ok=False)
    assert done.returncode == 1
    assert "OMPI_MCA_btl" in done.stderr


def test_a_controller_that_is_away_for_a_while_ends_no_following(cluster, on):
    def controller(signal_name):
        where = ("--name", cluster.name, "--user", "root")
        # pkill has no -x, because after a reconfigure the process has the name of its file, slurmctld-wlm.
        toolkit("cluster", "exec", *where, "--", "pkill", f"-{signal_name}", "slurmctld")

    words = ("launch", *on, "--no-preflight", "--", "sh", "-c", "echo begun; sleep 40; echo over")
    process = subprocess.Popen(
        toolkit.words(*words), cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout
    assert process.stderr
    assert any("begun" in line for line in iter(process.stdout.readline, ""))
    try:
        controller("STOP")
        assert any("does not answer" in line for line in iter(process.stderr.readline, ""))
    finally:
        controller("CONT")
        out, _ = process.communicate(timeout=90)
    assert "over" in out
    assert process.returncode == 0
    assert last_record()["state"] == "completed"


def test_ctrl_c_while_the_image_is_copied_leaves_no_job_and_what_the_next_copy_goes_on_with(
    cluster, training_sif
):
    before = toolkit("jobs", "list", "--json").stdout
    # toolkit identifies images by name and digest, so a copy under another name is uploaded again.
    image = training_sif.with_name("interrupted.sif")
    image.unlink(missing_ok=True)
    image.hardlink_to(training_sif)
    words = toolkit.words("launch", "--cluster", cluster.name, "--image", str(image), "--", "true")
    process = subprocess.Popen(words, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr
        assert any("Copying" in line for line in iter(process.stderr.readline, ""))
        time.sleep(0.3)
        os.kill(process.pid, signal.SIGINT)
        process.communicate(timeout=60)
    finally:
        process.kill()
        image.unlink()
    assert process.returncode == 130
    assert toolkit("jobs", "list", "--json").stdout == before
    images = f"/work/{cluster.user}/toolkit/images"
    left = [name for name in on_login(cluster, f"ls -A {images}").split() if "interrupted" in name]
    assert all(name.endswith(".part") for name in left), left
    on_login(cluster, f"rm -f {images}/.interrupted.sif.*.part")


def test_a_contained_mpirun_that_hangs_in_the_preflight_is_ended_with_its_ranks(cluster, on):
    words = ("--nodes", "1", "--ranks-per-node", "2", "--mode", "mpirun-container", "--force", "--dry-run")
    script = launched(on, *words, "--", "true").stdout
    launched(on, "--no-preflight", "--", "true")
    script = script.replace("--kill-after=10 300", "--kill-after=10 5")
    script, found = re.subn(r"python -m toolkit\.trainers\.preflight(\\\n|.)*", "sleep 98765", script)
    assert found == 1
    script = script.replace(f"--bind {run_folder(script)}", "")
    folder = f"/work/{cluster.user}/hang"
    submit = "cat > job.sh && sbatch --wait --nodelist=node1 job.sh"
    said = on_login(cluster, f"mkdir -p {folder} && cd {folder} && {submit}; cat output.log", stdin=script)
    assert "preflight: MPI did not start within" in said
    ps = "pgrep -x sleep -a || true"
    assert "98765" not in on_login(cluster, f"srun --nodelist=node1 sh -c '{ps}'")
