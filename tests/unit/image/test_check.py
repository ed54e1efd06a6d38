"""Test the checks of a built image and of the description that the image contains."""

import json
import subprocess
import sys

import msgspec
import pytest

from tests.unit.tables import every_row
from toolkit.errors import CheckFailed
from toolkit.image.builds.check import disagreements, read_stack, trials
from toolkit.image.locks.lock import load_lock
from toolkit.model.stack import Stack

LOCK = load_lock("tf2.15-cpu")
STACK = Stack(
    recipe="tf2.15-cpu",
    distribution="debian 12",
    architecture="x86_64",
    glibc="2.36",
    python="3.11.2",
    mpi="openmpi",
    mpi_version="4.1.4",
    pmix="4.2.2",
    ucx="1.13.1",
    libfabric="1.17.0",
    hwloc="2.9.0",
    tensorflow="2.15.1",
    horovod="0.28.1",
    horovod_operations=("mpi", "gloo"),
    mpi4py="4.1.1",
    numpy="1.26.4",
    base="b",
    toolkit="0.1.0",
)


def test_an_image_that_is_what_was_asked_for_has_no_disagreements():
    assert disagreements(LOCK, STACK) == ()


@every_row(
    ("change", "said"),
    [
        ({"mpi_version": "4.1.5"}, "mpi version: the lock names 4.1.4, the image has 4.1.5"),
        ({"mpi": "mpich"}, "mpi: the lock names openmpi, the image has mpich"),
        ({"tensorflow": ""}, "tensorflow: the lock names 2.15.1, the image has none"),
        ({"horovod": "0.27.0"}, "horovod: the lock names 0.28.1, the image has 0.27.0"),
        ({"mpi4py": "3.1.4"}, "mpi4py: the lock names 4.1.1, the image has 3.1.4"),
        ({"python": "3.1.1"}, "python: the lock names 3.11, the image has 3.1.1"),
        (
            {"horovod_operations": ("gloo",)},
            "horovod: the lock names the operation mpi, the image's Horovod lacks mpi",
        ),
    ],
)
def test_every_other_version_is_a_line(change, said):
    assert disagreements(LOCK, msgspec.structs.replace(STACK, **change)) == (said,)


def test_a_lock_that_names_nothing_is_a_disagreement_about_python():
    bare = msgspec.structs.replace(LOCK, solution=msgspec.structs.replace(LOCK.solution, chosen=()), steps=())
    assert disagreements(bare, STACK) == ("python: the lock names none, the image has 3.11.2",)


def test_a_description_is_read_back():
    assert read_stack(msgspec.json.encode(STACK).decode(), "x") == STACK


@every_row("text", ["", "{}", json.dumps({"recipe": 1})])
def test_a_description_that_is_none_is_refused(text):
    with pytest.raises(CheckFailed, match=r"x: /opt/toolkit/stack.json in the image is not valid"):
        read_stack(text, "x")


def test_everything_in_the_recipe_is_imported_and_two_ranks_meet():
    (imports, _), (ranks, _) = trials(LOCK)
    assert imports[-1] == "import mpi4py.MPI, horovod.tensorflow.keras, tensorflow"
    assert ranks[0] == "mpirun"


def test_an_image_without_mpi4py_is_only_started():
    chosen = tuple(c for c in LOCK.solution.chosen if c.component in ("base", "python", "openmpi"))
    bare = msgspec.structs.replace(LOCK.solution, chosen=chosen)
    (only,) = trials(msgspec.structs.replace(LOCK, solution=bare))
    assert only[0] == ("python", "-c", "import sys")


def installed(folder, name, module, text):
    (folder / module).mkdir()
    (folder / module / "__init__.py").write_text(text)
    about = folder / f"{name.replace('-', '_')}-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (about / "RECORD").write_text(
        f"{module}/__init__.py,,\n../../bin/{name},,\n{name}-1.0.dist-info/METADATA,,\n"
    )


@every_row(
    ("text", "said"),
    [
        ("", ""),
        ("import gone", "import own_module of own-package: ModuleNotFoundError: No module named 'gone'"),
        ("raise ValueError('Cannot load imports from non-existent stub')", "ValueError: Cannot load imports"),
        ("raise ImportError('libcuda.so.1: cannot open shared object file')", ""),
    ],
)
def test_what_packages_of_a_recipe_brought_is_imported(tmp_path, text, said):
    installed(tmp_path, "own-package", "own_module", text)
    (words, doing) = trials(msgspec.structs.replace(LOCK, packages=("own-package",)))[1]
    assert doing == "import the modules of own-package"
    ran = subprocess.run(
        (sys.executable, *words[1:]), env={"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True
    )
    assert (ran.returncode != 0) == bool(said)
    assert said in ran.stderr
