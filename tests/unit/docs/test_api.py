"""Test the examples of the Python API: each block of the page and each cell of the notebook runs as shown."""

import contextlib
import io
import json
import re
import shutil
from pathlib import Path

import msgspec
import pytest

from docs.generate.outside import ROOT
from tests.unit.cli.test_launch import Cluster
from tests.unit.image.mpi_sif import write_mpi_sif
from tests.unit.report.trainings import job_folder
from toolkit import app
from toolkit.launch.tracking import follow

PAGE = ROOT / "docs" / "api.md"
NOTEBOOK = ROOT / "docs" / "examples" / "api.ipynb"
CLUSTER = ROOT / "tests" / "evidence" / "virtual-cluster-login.txt"
KILLED = "slurmstepd: error: Detected 1 oom_kill event in StepId=12.0.\n"
_BLOCK = re.compile(
    r"^```python\n(?P<code>.*?)^```\n(?:\n```text\n(?P<shown>.*?)^```$)?", re.MULTILINE | re.DOTALL
)


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "WORK", "TOOLKIT_CACHE_DIR"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    write_mpi_sif(tmp_path / "my.sif")
    (tmp_path / "facts.json").write_bytes(msgspec.json.encode(app.load_facts(CLUSTER)))
    (tmp_path / "slurm-12.out").write_text(KILLED)
    (tmp_path / "train.py").write_text("import horovod.keras as hvd\n\nhvd.init()\n")
    job_folder(tmp_path / "runs" / "mnist-1")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def stub(folder: Path, name: str, script: str) -> None:
    file = folder / "bin" / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)


@pytest.fixture
def cluster(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stub(place, "sbatch", 'echo started >"$(dirname "$(eval echo \\"\\${$#}\\")")/output.log"; echo 7')
    stub(place, "scontrol", "echo JobId=7 JobState=COMPLETED ExitCode=0:0")
    stub(place, "squeue", "true")
    monkeypatch.setenv("PATH", f"{place / 'bin'}:/usr/bin:/bin")
    monkeypatch.setattr("toolkit.job.places.open_runner", lambda *_: Cluster())
    for name in ("_FIRST_QUERY", "_OUTPUT_SECONDS", "_SETTLE_SECONDS"):
        monkeypatch.setattr(follow, name, 0.01)


def ran(code: str, names: dict[str, object]) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(code, "example", "exec"), names)  # noqa: S102 - our example
    return printed.getvalue()


def blocks() -> list[tuple[str, str | None]]:
    return [(found["code"], found["shown"]) for found in _BLOCK.finditer(PAGE.read_text())]


def test_every_example_of_the_page_prints_what_is_shown(cluster: None, monkeypatch: pytest.MonkeyPatch):
    which = shutil.which
    monkeypatch.setattr(shutil, "which", lambda name: None if name == "sbatch" else which(name))
    names: dict[str, object] = {}
    for code, shown in blocks():
        assert ran(code, names) == (shown or ""), code
    assert names["output"] == "started\n"
    assert PAGE.read_text().count("```python") == len(blocks()) > 8


def test_the_page_names_every_function():
    functions = {name for name in app.__all__ if name.islower() and name != "errors"}
    table = PAGE.read_text().partition("## Functions")[2].partition("## Predict")[0]
    assert functions == set(re.findall(r"`(\w+)\(", table)) - {"help"}


def cells() -> list[dict]:
    return json.loads(NOTEBOOK.read_text())["cells"]


def test_the_notebook_runs_from_top_to_bottom_without_a_network(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(shutil, "which", lambda _: None)
    monkeypatch.setattr("toolkit.job.places.open_runner", lambda *_: pytest.fail("a place was opened"))
    names: dict[str, object] = {}
    printed = [ran("".join(cell["source"]), names) for cell in cells() if cell["cell_type"] == "code"]
    text = "".join(printed)
    assert "openmpi 4.1.4 with PMIx 4.2.2" in text
    assert "use: srun-pmix" in text
    assert "#SBATCH --nodes=2" in text
    assert "--mpi=pspmix" in text
    assert all(printed[n] for n in (0, 1, 2, 4))


def test_the_notebook_is_valid_and_holds_no_output():
    notebook = json.loads(NOTEBOOK.read_text())
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert set(notebook) == {"cells", "metadata", "nbformat", "nbformat_minor"}
    ids = [cell["id"] for cell in notebook["cells"]]
    assert len(set(ids)) == len(ids)
    for cell in notebook["cells"]:
        wanted = {"cell_type", "id", "metadata", "source"}
        if cell["cell_type"] == "code":
            wanted |= {"execution_count", "outputs"}
            assert (cell["execution_count"], cell["outputs"]) == (None, [])
        assert set(cell) == wanted
