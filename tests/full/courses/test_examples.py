"""Test every ``toolkit`` command in README and the guides on a virtual cluster."""

import shutil
import time

import pytest

from tests.courses import run as courses
from tests.courses.desk import CLASSROOM, Shell
from tests.courses.examples import PAGES, ROOT, examples

TRAIN = '''
"""A script of a reader: a small network on made-up data, joined with Horovod."""

import argparse

import horovod.tensorflow.keras as hvd
import numpy as np
from tensorflow import keras

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=1)
options = parser.parse_args()
hvd.init()
x = np.random.default_rng(hvd.rank()).normal(size=(256, 8)).astype("float32")
y = (x.sum(1) > 0).astype("int32")
model = keras.Sequential([keras.layers.Dense(16, activation="relu"), keras.layers.Dense(2)])
optimizer = hvd.DistributedOptimizer(keras.optimizers.SGD(0.05 * hvd.size()))
model.compile(optimizer, keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
begin = [hvd.callbacks.BroadcastGlobalVariablesCallback(0)]
model.fit(x, y, epochs=options.epochs, callbacks=begin, verbose=2 if hvd.rank() == 0 else 0)
if hvd.rank() == 0:
    model.save("model.keras")
'''
PLAIN = '''
"""A script of a reader for one process: a small network on made-up data."""

import argparse

import numpy as np
from tensorflow import keras

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=1)
options = parser.parse_args()
x = np.random.default_rng(1).normal(size=(256, 8)).astype("float32")
y = (x.sum(1) > 0).astype("int32")
model = keras.Sequential([keras.layers.Dense(16, activation="relu"), keras.layers.Dense(2)])
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(keras.optimizers.SGD(0.05), loss, metrics=["accuracy"])
model.fit(x, y, epochs=options.epochs, verbose=2)
model.save("model.keras")
'''
PROJECT = """\
[project]
name = "proj"
version = "0.1"
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"
"""
TICKET = '[cluster]\nslurm = "23.02"\noffers = ["pmi2", "pmix"]\n[image]\nmpi = "openmpi 4.1.4"\n'
DOCKERFILE = (
    "FROM debian:12\nRUN apt-get update && apt-get install -y openmpi-bin\nRUN pip install mpi4py==4.1.1\n"
)
OUTPUT = "epoch 1\nModuleNotFoundError: No module named 'titel'\nsrun: error: node1: task 0: Exited\n"


@pytest.fixture(scope="module")
def room(training_sif):
    with courses.classroom() as name:
        yield name


def furnish(folder, sif, script):
    for name in ("my.sif", "tf.sif", "their.sif", "centre.sif"):
        (folder / name).symlink_to(sif)
    (folder / "mynet").mkdir()
    (folder / "train.py").write_text(script)
    (folder / "mynet" / "train.py").write_text(TRAIN)
    (folder / "proj").mkdir()
    (folder / "proj" / "pyproject.toml").write_text(PROJECT)
    (folder / "proj" / "proj.py").write_text("")
    (folder / "requirements.txt").write_text("rich>=13\nxxhash\n-e ./proj\n")
    (folder / "mynet" / "__init__.py").write_text("")
    (folder / "ticket.toml").write_text(TICKET)
    (folder / "Dockerfile").write_text(DOCKERFILE)
    for name in ("output.log", "slurm-123.out"):
        (folder / name).write_text(OUTPUT)
    (folder / "docs" / "examples").mkdir(parents=True)
    shutil.copy(ROOT / "docs" / "examples" / "spirals.py", folder / "docs" / "examples")


@pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])
def test_the_examples_of_a_page_run_as_shown(page, room, training_sif):
    wanted = [example for example in examples(page) if example.row.how != "parse"]
    with courses.desk(page.read_text()) as desk:
        # The page own-script.md begins with a script for one process.
        furnish(desk.folder, training_sif, PLAIN if page.stem == "own-script" else TRAIN)
        with Shell(desk.folder, desk.environment()) as shell:
            for example in wanted:
                text = example.typed(CLASSROOM).replace("train-2026", time.strftime("train-%Y"))
                status, lines = shell.run(desk.typed(text.replace(" NAME", f" {CLASSROOM}")), 900)
                assert status == 0, "\n".join([f"$ {text}", *lines])
