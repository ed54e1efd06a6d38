import json
import sys

import msgspec
import pytest
from click.testing import CliRunner

from tests.unit.launch.examples import RECORD
from tests.unit.launch.recorded import Recorded
from tests.unit.report.trainings import COMPLETE, END, EPOCHS, HEADER, PARTIAL, job_folder, lines
from tests.unit.tables import every_row
from toolkit.cli.report import command
from toolkit.errors import BadInput, Missing
from toolkit.job import places


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
    with pytest.raises(BadInput, match="job 'other': not found"):
        report("other")


def test_what_is_neither_folder_nor_job_is_told_as_that(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file.txt").write_text("")
    for word in ("nosuch", "file.txt", "runs/nosuch"):
        with pytest.raises(BadInput, match=f"^{word}: neither the folder of a run"):
            report(word)
    with pytest.raises(BadInput, match="no job was launched from this machine yet"):
        report()
    job_folder(tmp_path / "toolkit" / "jobs" / "mnist-20261121-000000-abc123")
    with pytest.raises(BadInput, match=r"^file\.txt: neither the folder of a run"):
        report("file.txt")


@every_row("output", ["/dev/null", "/dev/zero"])
def test_an_output_that_is_no_folder_is_refused_before_anything_is_read(job, output):
    with pytest.raises(BadInput, match=f"--output: {output} cannot be written: it is not a folder"):
        report(job, "-o", output)


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """Return a function that stores a job with ``metrics`` on this machine and ``there`` on the host.

    If ``there`` is ``None``, the host is unreachable.
    """
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))

    def keep(state, metrics, there):
        folder = job_folder(tmp_path / "toolkit" / "jobs" / RECORD.key, metrics)
        record = msgspec.structs.replace(RECORD, state=state)
        (folder / "record.json").write_bytes(msgspec.json.encode(record))

        def opened(*_where):
            if there is None:
                raise Missing("login: no route to host")
            return Recorded({f"{RECORD.spec.directory}/metrics.jsonl": there})

        monkeypatch.setattr(places, "open_runner", opened)
        return folder / "metrics.jsonl"

    return keep


@every_row(("state", "metrics"), [("running", PARTIAL), ("running", COMPLETE), ("failed", PARTIAL)])
def test_what_may_have_grown_is_fetched_again(kept, state, metrics):
    newer = lines(HEADER, *EPOCHS, {**EPOCHS[1], "epoch": 3, "test_accuracy": 0.99}, END)
    file = kept(state, metrics, newer)
    assert json.loads(report("--json").stdout)["test_accuracy"] == 0.99
    assert file.read_bytes() == newer


def test_what_is_whole_of_a_job_that_has_ended_is_not_fetched(kept):
    kept("completed", COMPLETE, None)
    done = report("--json")
    assert (json.loads(done.stdout)["complete"], done.stderr) == (True, "")


def test_figures_from_before_stay_and_are_named_as_such_where_the_place_is_away(kept):
    file = kept("running", PARTIAL, None)
    done = report("--json")
    assert json.loads(done.stdout)["complete"] is False
    assert "no route to host; toolkit uses the metrics that it copied before" in done.stderr
    kept("running", PARTIAL, b"")
    assert json.loads(report("--json").stdout)["epochs"] == 1
    assert file.read_bytes() == PARTIAL
    kept("running", PARTIAL, None).unlink()
    with pytest.raises(Missing, match="no route to host"):
        report()


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
    with pytest.raises(BadInput, match="contains no metrics"):
        report(tmp_path)


def printing(folder, text):
    folder.mkdir(parents=True)
    record = msgspec.structs.replace(RECORD, key=folder.name, state="completed")
    (folder / "record.json").write_bytes(msgspec.json.encode(record))
    (folder / "output.log").write_text(text)
    return folder


def test_figures_that_a_program_printed_are_a_table(tmp_path):
    text = (
        "0: Epoch 1/2\n0: 8/8 - 1s - loss: 0.7 - accuracy: 0.5\n1: loss: 9\n0: loss: nan - accuracy: 0.75\n"
    )
    folder = printing(tmp_path / "net-20261121-000000-abc123", text)
    done = report(folder, "-o", tmp_path / "out")
    assert done.exit_code == 0
    assert [line.split() for line in done.stdout.splitlines()[2:4]] == [["1", "0.7", "0.5"], ["2", "0.75"]]
    assert f"from the output of {folder.name}" in done.stdout
    assert (tmp_path / "out/figures.csv").read_text() == "line,loss,accuracy\n1,0.7,0.5\n2,,0.75\n"
    told = json.loads(report(folder, "--json").stdout)
    assert (told["schema"], told["rows"][1]) == ("toolkit.figures/1", {"loss": None, "accuracy": 0.75})


def test_a_program_without_figures_gets_the_way_to_have_some(tmp_path):
    folder = printing(tmp_path / "net-20261121-000000-abc123", "ready\n")
    with pytest.raises(BadInput, match="output contains no metrics") as caught:
        report(folder)
    assert "epoch 1 loss: 0.31" in caught.value.fix
