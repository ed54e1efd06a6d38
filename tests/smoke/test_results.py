"""Test the explanation of a failed job, and the reports of a training and of a study."""

from tests.services.jobs import last_record, launched
from tests.services.program import toolkit


def test_the_cause_of_a_failure_is_named_from_any_output(on, tmp_path):
    code = "from mpi4py import MPI; assert MPI.COMM_WORLD.rank == 0, 'No space left on device'"
    launched(on, "--nodes", "2", "--no-preflight", "--", "python", "-c", code, ok=False)
    output = tmp_path / "slurm-1.out"
    output.write_text(toolkit("jobs", "logs", last_record()["key"]).stdout)
    told = toolkit("explain", str(output), ok=False)
    assert "disk" in told.stdout.lower() or "space" in told.stdout.lower()


def test_a_study_of_two_sizes_becomes_a_page(cluster, training_sif, few, tmp_path):
    study, page = tmp_path / "study", tmp_path / "page"
    toolkit(
        "scale", "mnist", "--ranks", "1,2", "--nodes", "1", "--repeat", "1", "--cpus-per-rank", "1",
        "--no-preflight", "--cluster", cluster.name, "--image", str(training_sif), "--data", str(few),
        "--study", str(study),
    )  # fmt: skip
    told = toolkit("report", str(study), "-o", str(page)).stdout
    assert "On 2 ranks on 1 node an epoch takes" in told
    assert "<svg" in (page / "index.html").read_text()
