"""Test that toolkit never counts a job as completed if its ranks do not find each other."""

import json
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.built import UV
from tests.matrix import build
from tests.matrix.images import specs
from tests.services.jobs import last_record, launched
from tests.services.program import toolkit
from tests.services.ready import RECIPE
from toolkit.image.locks.lock import load_lock
from toolkit.report.progress import Progress

ALONE = [
    ("trap-static-mpich", "srun-pmix"),
    ("trap-static-mpich", "mpirun-host"),
    ("trap-two-programs", "srun-pmix"),
    ("trap-two-programs", "mpirun-host"),
    ("trap-pmi-size", "srun-pmi2"),
]
"""Launches in which each rank starts as a world of size 1, as measured."""
WORLD = "from mpi4py import MPI; print('size', MPI.COMM_WORLD.size, MPI.Get_library_version()[:5])"


@pytest.mark.parametrize(("name", "mode"), ALONE)
def test_a_program_whose_ranks_stay_alone_is_not_completed(engine, cluster, name, mode):
    image = str(build.ensure(engine, specs()[name], Progress(verbose=False, quiet=True)))
    words = ("--cluster", cluster.name, "--image", image, "--nodes", "2", "--mode", mode, "--time", "2")
    done = launched(words, "--force", "--", "/opt/probe", ok=False)
    assert last_record()["state"] == "failed", done.stdout + done.stderr
    assert done.returncode == 1
    sizes = {json.loads(line)["size"] for line in done.stdout.splitlines() if line.startswith('{"rank"')}
    assert sizes <= {1}


@pytest.fixture(scope="module")
def user_site(cluster, tmp_path_factory):
    folder = tmp_path_factory.mktemp("local")
    python = load_lock(RECIPE).solution.versions["python"]
    words = ["--python-version", python, "--prefix", str(folder), "mpich==4.3.1", "mpi4py==4.1.2"]
    subprocess.run([UV, "pip", "install", "-q", *words], check=True, timeout=300)
    # uv chooses the wheels by the version, and the folder by the Python that runs uv.
    installed = next(path for path in (folder / "lib").iterdir() if path.name.startswith("python3"))
    installed.rename(folder / "lib" / f"python{python}")
    packed = subprocess.run(["tar", "-C", folder, "-cz", "."], check=True, capture_output=True).stdout
    ssh = ["ssh", "-F", str(cluster.ssh_config), "login"]
    subprocess.run([*ssh, "mkdir -p ~/.local && tar -xz -C ~/.local"], input=packed, check=True, timeout=60)
    yield
    names = " ".join(shlex.quote(path.name) for path in Path(folder).iterdir())
    subprocess.run([*ssh, f"cd ~/.local && rm -r {names}"], check=True, timeout=60)


@pytest.mark.usefixtures("user_site")
@pytest.mark.parametrize("words", [(), ("--user-site",)])
def test_the_python_of_a_virtual_environment_does_not_read_the_home_folder(on, words):
    done = launched(on, "--nodes", "2", *words, "--", "python", "-c", WORLD)
    assert done.stdout.count("size 2 Open ") == 2, done.stdout


@pytest.mark.usefixtures("user_site")
def test_an_mpi_in_the_home_folder_that_the_user_asks_for_makes_no_complete_job(on):
    words = ("--nodes", "2", "--mode", "srun-pmix", "--user-site")
    command = ("--", "/usr/bin/python3", "-c", WORLD)
    done = launched(on, *words, *command, ok=False)
    assert done.returncode == 1
    assert "~/.local" in done.stderr
    done = launched(on, *words, "--force", *command, ok=False)
    assert done.returncode == 1
    assert last_record()["state"] == "failed"


def test_a_script_that_trains_by_itself_on_each_rank_is_refused(on, tmp_path):
    script = tmp_path / "serial.py"
    script.write_text("for epoch in range(2):\n    print(f'Epoch {epoch + 1}/2 - loss: 0.5')\n")
    done = toolkit("launch", *on, "--nodes", "2", str(script), ok=False)
    assert done.returncode == 1
    assert "never joins its ranks: 2 copies would train separately" in done.stderr
