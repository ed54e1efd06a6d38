"""Test what toolkit finds in the text of a program: its use of ranks, its imports and its faults."""

from pathlib import Path

import pytest

from tests.unit.tables import every_row
from toolkit.program.script import read_module, read_script, read_text

JOINS = {
    "import horovod.tensorflow.keras as hvd\nhvd.init()": "horovod",
    "from horovod import torch as hvd\n\ndef main():\n    hvd.init()\n\nmain()": "horovod",
    "import importlib\nhvd = importlib.import_module('horovod.torch')\nhvd.init()": "horovod",
    "import horovod.keras as hvd\nsetup = hvd.init\nsetup()": "horovod",
    "from mpi4py import MPI\nprint(MPI.COMM_WORLD.rank)": "mpi",
    "import mpi4py\nmpi4py.rc.initialize = False\nimport mpi4py.MPI": "mpi",
    "import torch.distributed as dist\ndist.init_process_group('gloo')": "torch",
    "from torch.distributed import *\ninit_process_group('nccl')": "torch",
    "import torch\nd = torch.distributed\nd.init_process_group()": "torch",
    "from torch.distributed.device_mesh import init_device_mesh\ninit_device_mesh('cpu', (2,))": "torch",
    "import os, torch\nn = os.environ['LOCAL_RANK']\ntorch.distributed.init_process_group": "torch torchrun",
    "from accelerate import Accelerator\na = Accelerator()": "accelerate",
    "from transformers import Trainer\nTrainer(model=None).train()": "accelerate",
    "import deepspeed\nengine = deepspeed.initialize()": "deepspeed",
    "import pytorch_lightning as pl\npl.Trainer(num_nodes=2).fit(None)": "lightning",
    "import lightning as L\nf = L.Fabric()": "lightning",
    "import jax\njax.distributed.initialize()": "jax",
    "import tensorflow as tf\ns = tf.distribute.MultiWorkerMirroredStrategy()": "tf-config",
    "import tensorflow as tf\ns = tf.distribute.experimental.MultiWorkerMirroredStrategy()": "tf-config",
    "import keras\nkeras.distribution.initialize()": "keras-distribution",
    "from toolkit.trainers.command import run\nrun(None)": "",
}

SERIAL = (
    "print(1)",
    "import tensorflow as tf\nm = tf.keras.Sequential()\nm.fit([], [])",
    "import torch\nmodel = torch.nn.DataParallel(torch.nn.Linear(1, 1))",
    "import tensorflow as tf\ns = tf.distribute.MirroredStrategy()",
    "import horovod.torch as hvd",
    "import keras\nkeras.distribution.set_distribution(None)",
    "import subprocess\nprint(subprocess.check_output(['git', 'rev-parse', 'HEAD']))",
    "import argparse\np = argparse.ArgumentParser()\np.add_argument('--init')",
)

UNKNOWN = {
    "import ray\nray.init()": "toolkit does not know whether the package ray connects the ranks",
    "import os\nprint(os.environ['SLURM_PROCID'])": "uses variables that launchers set: SLURM_PROCID",
    "import importlib, sys\nimportlib.import_module(sys.argv[1])": "whose name is known only at run time",
    "import subprocess\nsubprocess.run(['mpirun', 'x'])": "line 2: subprocess.run",
    "exec(open('x').read())": "line 1: exec",
}


@every_row("text", JOINS)
def test_a_program_that_joins_its_ranks(text):
    facts = read_text(text)
    assert " ".join(sorted(facts.joins)) == JOINS[text]
    assert facts.serial is False
    assert facts.unknown == ()
    assert facts.trainer is ("toolkit.trainers" in text)


@every_row("text", SERIAL)
def test_a_program_that_joins_nothing(text):
    facts = read_text(text)
    assert (facts.joins, facts.serial, facts.unknown) == (frozenset(), True, ())


@every_row("text", UNKNOWN)
def test_a_program_whose_text_does_not_tell(text):
    facts = read_text(text)
    assert facts.serial is None
    assert any(UNKNOWN[text] in why for why in facts.unknown), facts.unknown


def test_the_files_of_a_project_are_followed(project):
    folder = project(
        {
            "main.py": "from net import build\nfrom lib.train import go\nimport numpy\ngo(build())",
            "net.py": "import tensorflow as tf\n\ndef build():\n    return tf.keras.Sequential()",
            "lib/__init__.py": "",
            "lib/train.py": "from . import comm\nfrom ..net import x\n\ndef go(net):\n    comm.start()",
            "lib/comm.py": "import horovod.tensorflow as hvd\n\ndef start():\n    hvd.init()",
            "other.py": "from mpi4py import MPI",
        }
    )
    facts = read_script(folder / "main.py")
    assert facts.joins == {"horovod"}
    assert facts.packages == {"numpy", "tensorflow", "horovod"}
    assert {file.name for file in facts.files} == {"main.py", "net.py", "__init__.py", "train.py", "comm.py"}


def test_files_that_do_not_travel_are_missing(project):
    folder = project({"main.py": "import net\nimport lib.data", "net.py": "", "lib/model.py": ""})
    facts = read_script(folder / "main.py", [folder / "main.py", folder / "lib/model.py"])
    assert [one.module for one in facts.missing] == ["lib.data"]
    assert [one.module for one in facts.imports] == ["net"]


@every_row(
    "text",
    [
        "try:\n    import apex\nexcept ImportError:\n    apex = None",
        "def plot():\n    import apex",
        "import sys\nif len(sys.argv) > 1:\n    import apex",
        "try:\n    import cupy\nexcept (ValueError, ModuleNotFoundError):\n    import apex",
    ],
)
def test_an_import_that_a_program_can_do_without(text):
    assert all(one.optional for one in read_text(text).imports if one.module == "apex")


@every_row(
    "text",
    [
        "import apex",
        "if __name__ == '__main__':\n    import apex",
        "with open('x') as f:\n    import apex",
        "try:\n    import apex\nexcept KeyError:\n    pass",
    ],
)
def test_an_import_that_a_program_needs(text):
    assert [one.module for one in read_text(text).imports if not one.optional] == ["apex"]


def test_an_import_for_types_alone_is_none():
    assert read_text("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import apex").packages == {
        "typing"
    }


def test_a_fault_of_syntax_names_file_and_line(project):
    folder = project({"main.py": "import net", "net.py": "def build(:\n    pass\n"})
    facts = read_script(folder / "main.py")
    assert facts.serial is None
    assert [(Path(f.file).name, f.line, f.text) for f in facts.faults] == [("net.py", 1, "def build(:")]


def test_a_file_that_is_no_text_has_a_fault(tmp_path):
    (tmp_path / "main.py").write_bytes(b"x = '\xff\xfe'\n")
    assert read_script(tmp_path / "main.py").faults


def test_a_module_runs_as_a_program(project):
    folder = project(
        {
            "pkg/__init__.py": "",
            "pkg/__main__.py": "from .run import go\ngo()",
            "pkg/run.py": "import jax\ngo = jax.distributed.initialize",
        }
    )
    facts = read_module("pkg", folder)
    assert facts is not None
    assert facts.joins == {"jax"}
    assert read_module("elsewhere", folder) is None


@pytest.fixture
def project(tmp_path):
    def write(files):
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return tmp_path

    return write
