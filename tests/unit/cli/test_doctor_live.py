"""Test the errors of ``doctor --live`` before anything runs, the launch modes that it tries, and its job."""

import pytest
from click.testing import CliRunner

from tests.unit.engine.examples import HOST, IMAGE, with_, without
from tests.unit.image.sifs import DATA, sif
from toolkit.cli.doctor.command import command as doctor
from toolkit.engine.predict import predict
from toolkit.errors import BadInput, Missing
from toolkit.job import live as doctor_live
from toolkit.job.live import TrialRequest
from toolkit.job.places import HostOptions
from toolkit.job.request.gate import ImageClearance
from toolkit.launch.trial import TrialProgram
from toolkit.model.job import ImageCheck
from toolkit.model.prediction import Request
from toolkit.report.progress import Progress
from toolkit.run.local import LocalRunner

HERE = HostOptions(None, None, None)
CLEARED = ImageClearance("sha256:00", ImageCheck(signature="none"))


@pytest.fixture
def image(tmp_path):
    file = tmp_path / "tiny.sif"
    file.write_bytes(sif((DATA / "tiny.gzip").read_bytes()))
    return file


def run(*words):
    return CliRunner().invoke(doctor, [*map(str, words), "--live"], obj={"verbose": False, "quiet": True})


def asked(image, *modes):
    return TrialRequest(image, 2, 1, modes, None, None)


def test_a_mode_without_mpi_is_not_tried(image):
    result = run(image, "--mode", "gloo")
    assert isinstance(result.exception, BadInput)
    assert "does not use MPI" in result.exception.message


def test_a_folder_and_a_file_that_is_not_there(tmp_path):
    for path in (tmp_path, tmp_path / "none.sif"):
        assert isinstance(run(path).exception, BadInput)


def test_an_image_without_mpi_has_nothing_to_try(image, monkeypatch):
    monkeypatch.setattr(doctor_live, "probe", lambda *_: HOST)
    result = run(image)
    assert isinstance(result.exception, Missing)
    assert "no MPI library" in result.exception.message


def test_a_node_of_the_first_partition_of_the_job_is_asked(image, monkeypatch):
    questions = []
    monkeypatch.setattr(doctor_live, "probe", lambda _, asked: questions.append(asked.partition) or HOST)
    run(image, "--partition", "gpu,long")
    run(image)
    assert questions == ["gpu", ""]


def test_a_bad_partition_is_refused(image):
    assert isinstance(run(image, "--partition", "a b").exception, BadInput)


def test_the_modes_that_are_tried(image):
    verdict = predict(HOST, IMAGE, Request())
    assert doctor_live._modes(asked(image), verdict) == ["srun-pmix"]
    named = asked(image, "srun-pmi2", "srun-pmix", "srun-pmi2")
    assert doctor_live._modes(named, verdict) == ["srun-pmi2", "srun-pmix"]
    nothing = with_(verdict, chosen=None)
    assert doctor_live._modes(asked(image), nothing)[0] in {p.mode for p in verdict.predictions if p.plan}


def bench(image, facts=IMAGE):
    files = (TrialProgram("trial.sh", b"x"),)
    tell = Progress(quiet=True)
    return doctor_live._Bench(
        asked(image), HERE, LocalRunner(), HOST, facts, files, "/base", "/there.sif", CLEARED, tell
    )


def test_the_job_of_a_trial_is_that_of_a_launch(image):
    record, text = doctor_live._job(bench(image), "srun-pmix")
    assert record.spec.directory.startswith("/base/runs/live-srun-pmix-")
    assert record.spec.time == "4"
    assert not record.spec.preflight
    assert "--mpi=pmix" in text
    assert f"{record.spec.directory}/trial.sh {IMAGE.mpi.library} 2 120" in text
    assert "OMPI_MCA_btl_base_verbose=10" in text
    assert "#SBATCH --time=4\n" in text


def test_a_mode_that_the_place_cannot_do_is_not_tried(image):
    bare = without(HOST, "slurm")
    prediction = predict(bare, IMAGE, Request()).of("srun-pmix")
    trial = doctor_live._try(bench(image), prediction)
    assert (trial.observed, trial.good) == (None, False)
    assert trial.predicted == "unavailable"
