"""Test that ``toolkit scale`` resumes an interrupted study on a real cluster, and test the study's page."""

import json
import re
import signal
import subprocess
import time

from tests.services.jobs import cut, on_login
from tests.services.program import ROOT, toolkit


def points(folder):
    found = [json.loads(file.read_text()) for file in (folder / "points").glob("*.json")]
    return {(one["ranks"], one["profile"]): one for one in found}


def test_a_study_whose_job_is_killed_goes_on_and_becomes_a_page(cluster, training_sif, few, tmp_path):
    study, page = tmp_path / "study", tmp_path / "page"
    words = [
        "scale", "mnist", "--ranks", "1,2", "--nodes", "1", "--repeat", "1", "--profile",
        "--cpus-per-rank", "1", "--no-preflight", "--cluster", cluster.name,
        "--image", str(training_sif), "--data", str(few), "--study", str(study),
    ]  # fmt: skip

    # Cancel the first job with scancel, and then interrupt the study.
    begun = toolkit.words(*words, "--retry", "0")
    process = subprocess.Popen(begun, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr
        assert any("Submitting" in line for line in process.stderr)
        deadline = time.monotonic() + 30
        while not points(study) and time.monotonic() < deadline:
            time.sleep(0.2)
        (first,) = points(study).values()
        toolkit("jobs", "cancel", first["job"])
        assert any("failed; toolkit does not repeat the run" in line for line in process.stderr)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)
    finally:
        process.kill()
    assert process.returncode == 130
    assert points(study)[1, False]["state"] == "failed"
    assert "cancelled" in points(study)[1, False]["why"]

    # The same command resumes the study, and repeats only failed runs.
    done = toolkit(*words)
    assert "3 of 3 runs are measured" in done.stdout
    found = points(study)
    assert {point["state"] for point in found.values()} == {"measured"}
    assert found[1, False]["tries"] == 2
    assert found[2, False]["tries"] == 1
    assert len(found[2, False]["figures"]["rates"]) == 2
    shares = found[2, True]["shares"]
    assert 0 < shares["reduce"] < 1
    assert shares["steps"] > 20

    shown = toolkit("report", str(study), "-o", str(page))
    assert re.search(r"On 2 ranks on 1 node an epoch takes", shown.stdout)
    text = (page / "index.html").read_text()
    assert "tensorflow 2.21" in text
    assert found[1, False]["origin"]["image_digest"] in text
    assert (page / "communication.png").read_bytes().startswith(b"\x89PNG")
    timeline = study / "timelines" / "r2-n1.json"
    assert "Settings to try" in toolkit("report", "--timeline", str(timeline)).stdout


def test_a_study_that_is_cut_off_killed_and_interrupted_loses_no_run_and_runs_none_twice(
    on, cluster, tmp_path
):
    """Cut the connections of ``toolkit scale`` and kill it, twice; the third start completes the study."""
    study = tmp_path / "study"
    ran = f"/work/ada/{tmp_path.name}.ran"
    line = f"[ $SLURM_PROCID = 0 ] && echo $SLURM_JOB_ID >> {ran}; sleep 6; echo speed: {{ranks}}00"
    words = toolkit.words(
        "scale", *on, "--ranks", "1,2", "--nodes", "1", "--repeat", "2", "--retry", "0", "--warm-up", "0",
        "--cpus-per-rank", "1", "--no-preflight", "--time", "5", "--pattern", r"speed: (\d+)",
        "--bind", "/work", "--study", str(study), "--", "sh", "-c", line,
    )  # fmt: skip

    def submitted():
        return [json.loads(file.read_text())["job"] for file in (study / "points").glob("*.json")]

    # SIGKILL leaves no time to write, but toolkit records each job when it is submitted.
    for kill_at in (1, 3):
        with subprocess.Popen(
            words, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as process:
            try:
                deadline = time.monotonic() + 120
                while len(submitted()) < kill_at and time.monotonic() < deadline:
                    time.sleep(0.2)
                cut(cluster)
                time.sleep(2)
            finally:
                process.kill()
        assert len(submitted()) == kill_at

    with subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        for _ in range(3):
            time.sleep(3)
            cut(cluster)
        said, _ = process.communicate(timeout=300)
    assert process.returncode == 0, said
    assert "4 of 4 runs are measured" in said
    found = [json.loads(file.read_text()) for file in (study / "points").glob("*.json")]
    assert sorted((one["ranks"], one["tries"], one["figures"]["rates"]) for one in found) == [
        (1, 1, [100.0]),
        (1, 1, [100.0]),
        (2, 1, [200.0]),
        (2, 1, [200.0]),
    ]
    jobs = on_login(cluster, f"cat {ran}").split()
    assert sorted(jobs) == sorted(one["origin"]["job_id"] for one in found)
