"""Scripts that ``toolkit adapt`` changed train on two ranks as well as they did in one process."""

import re
import shutil

import numpy as np
import pytest

from tests.services import ready
from tests.services.program import toolkit
from tests.services.workers import one_at_a_time
from tests.unit.program.adapt.golden import FOLDER, SCRIPTS
from toolkit.job.adapt import adapt
from toolkit.run.docker.containers import Box, run_once

WITHIN = 0.005
"""The largest difference between the accuracy of two ranks and of one process."""

SETTINGS = {
    "CUDA_VISIBLE_DEVICES": "",
    "GLOO_SOCKET_IFNAME": "lo",
    "HOME": "/tmp",
    "OMP_NUM_THREADS": "1",
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
    "OMPI_MCA_mpi_yield_when_idle": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "TF_NUM_INTEROP_THREADS": "1",
    "TF_NUM_INTRAOP_THREADS": "1",
}
BY_MPI = "mpirun --oversubscribe --bind-to none -n 2 python train.py"
BY_VARIABLES = """
for rank in 0 1; do
    RANK=$rank LOCAL_RANK=$rank WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 \
    TF_CONFIG='{"cluster": {"worker": ["127.0.0.1:29500", "127.0.0.1:29501"]},
        "task": {"type": "worker", "index": '$rank'}}' python train.py &
    pids="$pids $!"
done
for pid in $pids; do wait "$pid" || exit 1; done
"""
IMAGES = {"horovod": ready.RECIPE, "torch": "torch-cpu"}
LONG = 900.0


# The image of PyTorch has no NumPy.
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
def digits(mnist, tmp_path_factory):
    """A folder of digits: 9,001 to train on, which two ranks cannot share evenly, and 4,157 others."""
    folder = tmp_path_factory.mktemp("digits")

    def read(name, offset):
        return np.frombuffer((mnist / name).read_bytes(), np.uint8, offset=offset)

    found = {}
    for part, name in (("train", "train"), ("test", "t10k")):
        labels = read(f"{name}-labels-idx1-ubyte", 8)
        images = read(f"{name}-images-idx3-ubyte", 16).reshape(-1, 28, 28)
        found |= {f"x_{part}": images[labels < 4][:9001], f"y_{part}": labels[labels < 4][:9001]}
    np.savez(folder / "mnist.npz", **found)
    for name, array in found.items():
        (folder / f"{name}.bin").write_bytes(array.tobytes())
    shapes = [f"{name} {' '.join(map(str, array.shape))}" for name, array in found.items()]
    (folder / "shapes.txt").write_text("\n".join(shapes))
    (folder / "tensors.py").write_text(AS_TENSORS)
    return folder


@pytest.fixture(scope="module")
def train(engine, digits, tmp_path_factory):
    """Run a script and return its last accuracy, and the names of the files in its folder."""

    def run(recipe, content, command):
        with one_at_a_time(recipe):
            toolkit("image", "build", recipe, timeout=3600)
        folder = tmp_path_factory.mktemp("run")
        shutil.copytree(digits, folder, dirs_exist_ok=True)
        (folder / "train.py").write_bytes(content)
        before = "python tensors.py && " if recipe == IMAGES["torch"] else ""
        image = f"toolkit/{recipe}:latest"
        box = Box(image, binds={str(folder): "/work"}, env=SETTINGS, memory=6 << 30, timeout=LONG)
        done = run_once(engine, box, ("sh", "-c", f"cd /work && {before}{command}"))
        found = re.findall(r"[Tt]est accuracy:? *([0-9.]+)", "\n".join(done.lines))
        assert found, done.lines[-40:]
        return float(found[-1]), sorted(p.name for p in folder.iterdir())

    return run


APART = {"keras3_ops", "keras_two_models"}
"""keras3_ops needs Keras 3; adapt leaves one line of keras_two_models unchanged, in which all ranks write a
file.
"""
WAYS = {name: adapt(FOLDER / f"{name}.py")[0].program for name in SCRIPTS}


@pytest.mark.parametrize("name", [name for name in WAYS if name not in APART])
def test_two_ranks_come_to_the_accuracy_of_one_process(train, name):
    recipe = IMAGES[WAYS[name]]
    result, content = adapt(FOLDER / f"{name}.py")
    command = BY_MPI if result.program == "horovod" else BY_VARIABLES
    alone, files = train(recipe, (FOLDER / f"{name}.py").read_bytes(), "python train.py")
    together, same_files = train(recipe, content, command)
    assert alone > 0.95
    assert abs(alone - together) <= WITHIN
    assert files == same_files


def test_a_strategy_of_tensorflow_comes_to_the_accuracy_of_one_process(train):
    path = FOLDER / "keras_sequential.py"
    _, content = adapt(path, "tf-config")
    alone, files = train(ready.RECIPE, path.read_bytes(), "python train.py")
    together, same_files = train(ready.RECIPE, content, BY_VARIABLES)
    assert abs(alone - together) <= WITHIN
    assert files == same_files
