"""Test that scripts that ``toolkit adapt`` changed reach on two nodes the accuracy of one process."""

import os
import re
import shutil

import numpy as np
import pytest

from tests.services import ready
from tests.services.jobs import last_record, launched
from tests.services.program import toolkit
from tests.unit.program.adapt.golden import FOLDER, SCRIPTS
from toolkit.job.adapt import adapt
from toolkit.run.docker.containers import Box, run_once

WITHIN = 0.01
"""Largest loss of accuracy on two nodes, whose ranks take half as many steps at twice the learning rate."""
APART = {"keras3_ops", "keras_two_models"}
"""Scripts that the test skips.

keras3_ops needs Keras 3. In keras_two_models, all ranks write the same file in a line that adapt keeps.
"""
IMAGES = {"horovod": ready.RECIPE, "torch": "torch-cpu"}
_OWNER = f"{os.getuid()}:{os.getgid()}"
ALONE = {"CUDA_VISIBLE_DEVICES": "", "HOME": "/tmp", "OMP_NUM_THREADS": "1", "TF_CPP_MIN_LOG_LEVEL": "3"}
WAYS = {name: adapt(FOLDER / f"{name}.py")[0].program for name in SCRIPTS if name not in APART}
CASES = [*WAYS.items(), ("keras_sequential", "tf-config")]

# The PyTorch image has no NumPy, so this code reads the data as tensors.
AS_TENSORS = """
import torch
parts = {}
for line in open("shapes.txt"):
    name, *shape = line.split()
    content = bytearray(open(f"{name}.bin", "rb").read())
    parts[name] = torch.frombuffer(content, dtype=torch.uint8).reshape(*map(int, shape))
torch.save(parts, "mnist.pt")
"""


@pytest.fixture(scope="module")
def boxed(engine, locked):
    def run(recipe, folder, *words):
        locked(recipe)
        ready.training_sif(recipe)
        image = f"toolkit/{recipe}:latest"
        box = Box(image, binds={str(folder): "/work"}, env=ALONE, memory=6 << 30, timeout=900.0)
        done = run_once(engine, box, ("sh", "-c", f'cd /work && "$@" && chown -R {_OWNER} .', "sh", *words))
        assert not done.status, done.lines[-40:]
        return done.lines

    return run


@pytest.fixture(scope="module")
def digits(boxed, mnist, tmp_path_factory):
    """Return a file per kind of program with 9,001 training digits, which two ranks cannot divide evenly."""
    folder = tmp_path_factory.mktemp("digits")

    def read(name, offset):
        return np.frombuffer((mnist / name).read_bytes(), np.uint8, offset=offset)

    found = {}
    for part, name in (("train", "train"), ("test", "t10k")):
        labels = read(f"{name}-labels-idx1-ubyte", 8)
        images = read(f"{name}-images-idx3-ubyte", 16).reshape(-1, 28, 28)
        found |= {f"x_{part}": images[labels < 4][:9001], f"y_{part}": labels[labels < 4][:9001]}
    np.savez(folder / "mnist.npz", **found)
    apart = tmp_path_factory.mktemp("tensors")
    for name, array in found.items():
        (apart / f"{name}.bin").write_bytes(array.tobytes())
    shapes = [f"{name} {' '.join(map(str, array.shape))}" for name, array in found.items()]
    (apart / "shapes.txt").write_text("\n".join(shapes))
    (apart / "tensors.py").write_text(AS_TENSORS)
    boxed(IMAGES["torch"], apart, "python", "tensors.py")
    return {"torch": apart / "mnist.pt", "horovod": folder / "mnist.npz", "tf-config": folder / "mnist.npz"}


def seeded(text):
    """Return the script with a fixed seed, so that each run gives the same accuracy."""
    first = re.search(r"^(?:import|from) (torch|tensorflow|keras)\b", text, re.MULTILINE)
    torch = first[1] == "torch"
    line = "import torch; torch.manual_seed(1)" if torch else "import keras; keras.utils.set_random_seed(1)"
    return f"{text[: first.start()]}{line}\n{text[first.start() :]}"


def accuracy(lines):
    return float(re.findall(r"[Tt]est accuracy:? *([0-9.]+)", lines)[-1])


@pytest.mark.parametrize(("name", "way"), CASES, ids=["-".join(case) for case in CASES])
def test_two_nodes_come_to_the_accuracy_of_one_process(name, way, boxed, digits, cluster, tmp_path):
    recipe = IMAGES.get(way, ready.RECIPE)
    for folder in ("alone", "work", "results"):
        (tmp_path / folder).mkdir()
        if folder != "results":
            shutil.copy(digits[way], tmp_path / folder)
            (tmp_path / folder / "train.py").write_text(seeded((FOLDER / f"{name}.py").read_text()))
    given = sorted(path.name for path in (tmp_path / "work").iterdir())
    alone = accuracy("\n".join(boxed(recipe, tmp_path / "alone", "python", "train.py")))

    program = () if WAYS[name] == way else ("--program", way)
    toolkit("adapt", "train.py", "-o", "train_dist.py", *program, cwd=tmp_path / "work")
    where = ("--cluster", cluster.name, "--image", str(ready.training_sif(recipe)))
    done = launched(where, "--nodes", "2", "train_dist.py", cwd=tmp_path / "work")
    together = accuracy(done.stdout)

    assert alone > 0.95
    assert alone - together <= WITHIN, f"{alone} in one process, {together} on two nodes"
    toolkit("jobs", "fetch", last_record()["key"], "-o", str(tmp_path / "results"))
    wrote = {path.name for path in (tmp_path / "alone").iterdir()}.difference(given)
    assert wrote <= {path.name for path in (tmp_path / "results").rglob("*")}
