"""Test the errors of ``toolkit notebook`` before it creates a job, and the script that it creates."""

import shutil
import socket
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.unit.cli.test_launch import Cluster
from tests.unit.image.sifs import sif, squashfs
from tests.unit.launch.examples import RECORD
from tests.unit.tables import every_row
from toolkit.cli import notebook
from toolkit.errors import BadInput, CheckFailed
from toolkit.launch.tracking import records


@pytest.fixture(autouse=True)
def _nowhere(tmp_path, monkeypatch):
    for variable in ("HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "WORK"):
        monkeypatch.setenv(variable, str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("toolkit.job.places.open_runner", lambda *_: Larger())


@pytest.fixture
def image(tmp_path):
    file = tmp_path / "tiny.sif"
    file.write_bytes(sif(squashfs({"/usr/lib/python3/dist-packages/jupyterlab.py": ""})))
    return str(file)


PARTITIONS = "|debug*|2|up|64|8783|(null)\n|gpu|2|up|64|8783|gpu:4\n|long|2|up|64|8783|(null)\n"


class Larger(Cluster):
    def __init__(self):
        super().__init__()
        self._answer = self._answer.replace(b"|debug*|2|up|2|8783|(null)\n", PARTITIONS.encode())


def run(*words):
    return CliRunner().invoke(notebook.command, words, obj={"verbose": False, "quiet": True})


@every_row(
    ("words", "said"),
    [
        (["--packages", "jupyter"], "--packages jupyter: not an absolute path"),
        (["--folder", "work"], "--folder work: not an absolute path"),
        (["--folder", "/a,b"], "option --bind cannot contain"),
        (["--env", "NOT_SET_HERE"], "the variable is not set"),
        (["--directory", "~other/x"], "--directory"),
        (["--time", "x;y"], "--time"),
        (["--partition", "a\nb"], "--partition"),
        (["--site", "polaris"], "a notebook needs Slurm"),
        (["--site", "nowhere"], "nowhere"),
        (["--image", "/nope.sif"], "no such file"),
        (["--attach", "nope"], "no job was launched"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(words, said):
    error = run("--host", "login.example", *words).exception
    assert isinstance(error, BadInput), error
    assert said in error.message
    assert "\n" not in error.message


def test_only_notebooks_are_attached_to():
    records.save(RECORD)
    error = run("--attach", RECORD.key).exception
    assert isinstance(error, BadInput)
    assert "is not a notebook" in error.message


def test_a_dry_run_prints_the_script_and_makes_nothing(image, tmp_path):
    wanted = ("--partition", "gpu", "--gpus-per-node", "2", "--cpus-per-rank", "4", "--memory", "8G")
    done = run("--host", "h", "--image", image, *wanted, "--dry-run")
    assert done.exit_code == 0, done.exception
    script = done.stdout
    for line in ("--nodes=1", "--ntasks=1", "--cpus-per-task=4", "--mem=8G", "--gres=gpu:2"):
        assert f"\n#SBATCH {line}\n" in script
    assert "--nv" in script
    assert "notebook.py" in script
    assert "token" not in script
    made = {path for path in tmp_path.rglob("*") if path.is_file() and path != Path(image)}
    # The command wrote only the image's facts, which the cache keeps for later commands.
    assert {path.relative_to(tmp_path).parts[:2] for path in made} <= {("toolkit", "facts")}


def test_an_image_without_jupyter_is_refused_before_the_job_waits(tmp_path):
    file = tmp_path / "plain.sif"
    file.write_bytes(sif(squashfs({"/usr/lib/python3/dist-packages/numpy.py": ""})))
    error = run("--host", "h", "--image", str(file), "--dry-run").exception
    assert isinstance(error, CheckFailed)
    assert error.message == "plain.sif does not contain Jupyter"
    for words in (["--force"], ["--packages", "/w/jupyter"]):
        assert run("--host", "h", "--image", str(file), "--dry-run", *words).exit_code == 0


def test_a_partition_that_there_is_not_is_refused(image):
    error = run("--host", "h", "--image", image, "--partition", "gpus", "--dry-run").exception
    assert isinstance(error, CheckFailed)
    assert error.message == "--partition gpus: unknown partition (did you mean gpu?)"


def test_options_have_their_former_names_with_a_warning(image):
    at = ("--host", "h", "--image", image, "--partition", "gpu")
    now = run(*at, "--gpus-per-node", "2", "--cpus-per-rank=4", "--dry-run")
    before = run(*at, "--gpus", "2", "--cpus=4", "--dry-run")
    lines = [
        [line for line in done.stdout.splitlines() if line.startswith("#SBATCH --")] for done in (now, before)
    ]
    assert now.exit_code == 0, now.exception
    assert lines[0] == lines[1]
    assert "warning: --gpus is deprecated; write --gpus-per-node" in before.stderr
    assert "deprecated" not in now.stderr
    assert "--cpus " not in run("--help").stdout


def test_a_node_of_the_first_partition_is_asked(image, monkeypatch):
    questions = []

    class Asked(Larger):
        def run(self, command):
            questions.append(command.words)
            return super().run(command)

    monkeypatch.setattr("toolkit.job.places.open_runner", lambda *_: Asked())
    done = run("--host", "h", "--image", image, "--partition", "gpu,long", "--dry-run")
    assert done.exit_code == 0, done.exception
    assert ("sh", "-s", "1", "5", "gpu") in questions
    assert "\n#SBATCH --partition=gpu,long\n" in done.stdout


def test_what_a_person_has_set_for_jobs_counts_here_too(image, monkeypatch):
    monkeypatch.setenv("TOOLKIT_ACCOUNT", "train")
    script = run("--host", "h", "--image", image, "--dry-run").stdout
    assert "\n#SBATCH --account=train\n" in script


def test_a_notebook_is_one_task_whatever_is_set_for_jobs(image, monkeypatch):
    monkeypatch.setenv("TOOLKIT_NODES", "4")
    monkeypatch.setenv("TOOLKIT_CHAIN", "3")
    script = run("--host", "h", "--image", image, "--dry-run").stdout
    assert "\n#SBATCH --nodes=1\n" in script
    assert "--requeue" not in script
    assert "stop-asked; a checkpoint" not in script


def test_settings_for_other_jobs_do_not_spoil_a_notebook(image, tmp_path):
    (tmp_path / "toolkit.toml").write_text(
        '[launch]\nnodes = 4\nelastic = true\nmin_nodes = 2\narray = "0-3"\n'
    )
    done = run("--host", "h", "--image", image, "--dry-run")
    assert done.exit_code == 0, done.exception
    assert "\n#SBATCH --nodes=1\n" in done.stdout
    assert "\n#SBATCH --output=output.log\n" in done.stdout
    assert "--no-kill" not in done.stdout
    assert "--array" not in done.stdout


@pytest.fixture
def far_away(monkeypatch):
    which = shutil.which
    monkeypatch.setattr(shutil, "which", lambda name: None if name == "sbatch" else which(name))


@pytest.mark.usefixtures("far_away")
def test_the_script_for_a_site_far_away_is_written_from_its_profile(tmp_path):
    words = ("--image", "tf2.15-notebook-cpu", "--account", "train", "--dry-run")
    done = CliRunner().invoke(
        notebook.command, ["--site", "juwels", *words], obj={"verbose": False, "quiet": False}
    )
    assert done.exit_code == 0, done.exception
    for line in ("--nodes=1", "--ntasks=1", "--partition=batch", "--account=train"):
        assert f"\n#SBATCH {line}\n" in done.stdout
    assert '"${PROJECT:?}"/toolkit/images/tf2.15-notebook-cpu.sif' in done.stdout
    assert "JUWELS Cluster was not contacted" in done.stdout
    assert "Copy the image to $PROJECT/toolkit/images/tf2.15-notebook-cpu.sif" in done.stderr
    assert "The notebook shows the folder $PROJECT/toolkit" in done.stderr
    assert not list(tmp_path.rglob("runs"))


@pytest.mark.usefixtures("far_away")
def test_what_is_given_counts_for_a_site_far_away_too(image):
    folders = ("--folder", "/w/me", "--packages", "/w/jupyter", "--directory", "/p/toolkit")
    words = ("--image", image, "--partition", "gpus", "--gpus-per-node", "4", *folders)
    done = run("--site", "juwels", *words, "--dry-run")
    assert done.exit_code == 0, done.exception
    assert "--bind /w/me" in done.stdout
    assert "--bind /w/jupyter:/w/jupyter:ro" in done.stdout
    assert "#SBATCH --gres=gpu:4" in done.stdout
    assert "/p/toolkit/images/tiny.sif" in done.stdout


@pytest.mark.usefixtures("far_away")
def test_a_notebook_with_gpus_goes_to_a_partition_that_has_them(image, monkeypatch):
    monkeypatch.setenv("TOOLKIT_NODES", "5000")
    monkeypatch.setenv("TOOLKIT_RANKS_PER_NODE", "41")
    done = run("--site", "juwels", "--image", image, "--gpus-per-node", "2", "--dry-run")
    why = "partition gpus: the default partition batch has no GPUs"
    for line in (
        "#SBATCH --partition=gpus",
        "#SBATCH --gres=gpu:2",
        "#SBATCH --cpus-per-task=20",
        f"# {why}",
    ):
        assert f"\n{line}\n" in done.stdout
    assert why in done.stderr.splitlines()


def test_a_notebook_at_a_host_says_in_its_script_why_it_goes_to_another_partition(image):
    words = ("--image", image, "--gpus-per-node", "2", "--directory", "/w", "--dry-run")
    script = run("--host", "h", "--site", "juwels", *words).stdout
    assert "\n# partition gpus: the default partition batch has no GPUs\n" in script


@pytest.mark.usefixtures("far_away")
def test_a_notebook_asks_for_what_a_site_may_demand(image):
    words = "--qos high --reservation course --constraint mem192 --exclusive --tmp 9G --module GCC"
    done = run("--site", "juwels", "--image", image, *words.split(), "--sbatch=--hold", "--dry-run")
    asked = ("qos=high", "reservation=course", "constraint=mem192", "exclusive", "tmp=9G", "hold")
    assert {f"#SBATCH --{line}" for line in asked} <= set(done.stdout.splitlines())
    assert "module load GCC" in done.stdout


@pytest.mark.usefixtures("far_away")
@every_row(
    ("words", "said"),
    [
        (["--runtime", "podman"], "--runtime podman: a notebook needs Apptainer or Singularity"),
        (["--gpus-per-node", "5"], "batch, devel, mem96: no GPUs; gpus, develgpus: 4 GPUs per node"),
        (["--image", "nope"], "neither a SIF file nor a recipe"),
        (["--image", "cluster:tiny"], "the file is on the cluster"),
        (["--json"], "--json and --dry-run: cannot be combined"),
    ],
)
def test_what_cannot_be_far_away_is_refused_in_one_line(words, said):
    error = run("--site", "juwels", "--dry-run", *words).exception
    assert isinstance(error, BadInput), error
    assert said in error.message


def test_a_taken_port_is_told_before_anything_is_sent(image, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        error = run("--host", "h", "--image", image, "--port", str(port)).exception
    assert isinstance(error, BadInput)
    assert f"--port {port}" in error.message
    assert not (tmp_path / "toolkit").exists()
