"""Test scripts that follow the documentation of PyTorch, JAX and TensorFlow, in real jobs."""

import json
import posixpath
import re
import shutil

import pytest

from tests.services import ready
from tests.services.jobs import last_record, launched, on_login
from tests.services.program import ROOT, toolkit

PROGRAMS = ROOT / "tests" / "matrix" / "peers" / "programs"
SCRIPTS = {
    "PyTorch": ("torch-cpu", "python", "ddp_step.py"),
    "torchrun": ("torch-cpu", "torchrun", "ddp.py"),
    "torchrun in a shell script": ("torch-cpu", "sh", "run.sh"),
    "JAX": ("jax-cpu", "python", "jax_auto.py"),
    "TensorFlow": (ready.RECIPE, "python", "mwms.py"),
}
"""The image's recipe and the command of each script."""
SHAPES = [(2, 1), (1, 2), (2, 2)]
"""Numbers of nodes and of ranks per node."""


def sizes(output):
    """Return the world size of each rank that printed a correct sum."""
    said = [json.loads(found) for found in re.findall(r'\{"rank"[^}]*\}', output)]
    return [one["size"] for one in said if one["comm"] == "ok"]


@pytest.mark.parametrize(("nodes", "ranks"), SHAPES)
@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_from_the_desk_joins_all_its_ranks(name, nodes, ranks, cluster, locked, tmp_path):
    recipe, *words = SCRIPTS[name]
    shutil.copytree(PROGRAMS, tmp_path / "work")
    locked(recipe)
    where = ("--cluster", cluster.name, "--image", str(ready.training_sif(recipe)))
    shape = ("--nodes", str(nodes), "--ranks-per-node", str(ranks))
    done = launched(where, *shape, "--", *words, cwd=tmp_path / "work")
    assert sizes(done.stdout) == [nodes * ranks] * (nodes * ranks), done.stdout + done.stderr


def test_options_of_torchrun_give_the_size_of_the_job(cluster, locked, tmp_path):
    shutil.copy(PROGRAMS / "ddp.py", tmp_path)
    locked("torch-cpu")
    where = ("--cluster", cluster.name, "--image", str(ready.training_sif("torch-cpu")))
    words = ("torchrun", "--nnodes=2", "--nproc-per-node=2", "ddp.py")
    done = launched(where, "--", *words, cwd=tmp_path)
    assert sizes(done.stdout) == [4] * 4, done.stdout + done.stderr


@pytest.fixture(scope="module")
def with_packages(locked, tmp_path_factory):
    locked("torch-cpu")
    folder = tmp_path_factory.mktemp("packages")
    (folder / "requirements.txt").write_text("lightning\naccelerate\n")
    image, made = ready.training_sif("torch-cpu"), folder / "packages.env"
    files = ("-f", str(folder / "requirements.txt"), "--over", str(image), "-o", str(made))
    toolkit("env", "create", *files, timeout=600)
    return made


@pytest.mark.parametrize(("nodes", "ranks"), SHAPES)
def test_a_trainer_of_lightning_joins_all_its_ranks(nodes, ranks, cluster, with_packages, tmp_path):
    shutil.copy(PROGRAMS / "lightning_fit.py", tmp_path / "fit.py")
    where = ("--cluster", cluster.name, "--image", str(ready.training_sif("torch-cpu")))
    shape = ("--nodes", str(nodes), "--ranks-per-node", str(ranks), "--env-image", str(with_packages))
    words = ("python", "fit.py", "--nodes", str(nodes), "--devices", str(ranks))
    done = launched(where, *shape, "--", *words, cwd=tmp_path)
    assert sizes(done.stdout) == [nodes * ranks] * (nodes * ranks), done.stdout + done.stderr


@pytest.mark.parametrize(("nodes", "ranks"), SHAPES)
def test_accelerate_joins_all_its_ranks_on_nodes_without_gpus(nodes, ranks, cluster, with_packages, tmp_path):
    shutil.copy(PROGRAMS / "accelerate_fit.py", tmp_path / "fit.py")
    where = ("--cluster", cluster.name, "--image", str(ready.training_sif("torch-cpu")))
    shape = ("--nodes", str(nodes), "--env-image", str(with_packages))
    words = ("accelerate", "launch", "--num_processes", str(nodes * ranks), "fit.py")
    done = launched(where, *shape, "--", *words, cwd=tmp_path)
    assert sizes(done.stdout) == [nodes * ranks] * (nodes * ranks), done.stdout + done.stderr


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_on_the_login_node_joins_all_its_ranks(name, cluster, locked, tmp_path):
    recipe, *words = SCRIPTS[name]
    locked(recipe)
    where = ("--cluster", cluster.name, "--image", str(ready.training_sif(recipe)))
    launched(where, "--no-preflight", "--force", "--", "true", cwd=tmp_path)
    there = last_record()["spec"]["image"]
    folder = f"/work/{cluster.user}/frameworks/{posixpath.splitext(words[-1])[0]}"
    text = (PROGRAMS / words[-1]).read_text()
    beside = (PROGRAMS / "ddp.py").read_text()
    on_login(cluster, f"mkdir -p {folder} && cat > {folder}/{words[-1]}", text)
    on_login(cluster, f"cat > {folder}/ddp.py", beside)
    line = f"toolkit launch --image {there} --nodes 2 --ranks-per-node 2 -- {' '.join(words)}"
    said = on_login(cluster, f"cd {folder} && {line}", timeout=600)
    assert sizes(said) == [4] * 4, said
