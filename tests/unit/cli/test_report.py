import json
import sys

import pytest
from click.testing import CliRunner

from tests.unit.report.trainings import PARTIAL, job_folder
from toolkit.cli.report import command
from toolkit.errors import BadInput, Missing


def report(*words):
    return CliRunner().invoke(command, [str(word) for word in words], catch_exceptions=False)


@pytest.fixture
def job(tmp_path):
    return job_folder(tmp_path / "job")


def test_a_folder_becomes_a_table_a_plot_and_json(job, tmp_path):
    done = report(job, "-o", tmp_path / "out")
    assert done.exit_code == 0
    assert "2 ranks on 2 nodes, srun-pmix" in done.stdout
    assert json.loads((tmp_path / "out/result.json").read_text())["test_accuracy"] == 0.98
    assert (tmp_path / "out/training.png").read_bytes().startswith(b"\x89PNG")
    assert "wrote" in done.stderr
    assert "wrote" not in done.stdout


def test_json_is_all_that_stdout_holds(job):
    assert json.loads(report(job, "--json").stdout)["schema"] == "toolkit.result/1"


def test_a_job_is_found_by_its_key(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    key = "mnist-20261121-000000-abc123"
    job_folder(tmp_path / "toolkit" / "jobs" / key)
    assert json.loads(report("mnist-2026", "--json").stdout)["job"] == key
    assert json.loads(report("--json").stdout)["job"] == key
    with pytest.raises(BadInput, match="there is no job 'other'"):
        report("other")


def test_a_partial_training_is_reported_as_such(tmp_path):
    done = report(job_folder(tmp_path / "job", PARTIAL), "-o", tmp_path, "--no-plot")
    assert "1 of 2 epochs are finished" in done.stdout
    assert json.loads((tmp_path / "result.json").read_text())["complete"] is False
    assert not (tmp_path / "training.png").exists()


def test_without_matplotlib_all_but_the_plot_is_there(job, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(Missing):
        report(job, "-o", tmp_path)
    assert (tmp_path / "result.json").is_file()
    assert not (tmp_path / "training.png").exists()


def test_a_folder_without_metrics_is_refused(tmp_path):
    with pytest.raises(BadInput, match="only trainers"):
        report(tmp_path)
