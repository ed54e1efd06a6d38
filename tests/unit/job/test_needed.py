"""Test that toolkit reports a program's missing files, GPUs or modules before it submits the job."""

import shlex
import subprocess
from contextlib import nullcontext
from pathlib import Path

import pytest

from tests.unit.image.sifs import elf
from tests.unit.tables import every_row
from toolkit.errors import BadInput, CheckFailed
from toolkit.image.software.contents import Contents
from toolkit.job.project.checks import findings
from toolkit.job.project.code import code_of, copy_project
from toolkit.job.project.desk_paths import check_desk_paths
from toolkit.job.project.ranks import check_ranks
from toolkit.job.request.flags import Flags
from toolkit.model.facts import ImageFacts
from toolkit.model.jobfile import JobFile
from toolkit.model.progress import Silent
from toolkit.run.command import Completed

IMAGE = Contents(
    frozenset({"python", "python3", "sh", "bash", "make"}),
    frozenset({"numpy", "torch", "horovod", "pandas"}),
    folders=frozenset({"/usr/bin", "/opt/venv/bin"}),
    libraries=frozenset({"libc.so.6", "libm.so.6"}),
)
PARSER = "import argparse\np = argparse.ArgumentParser()\n"
NET = "import torch\nnet = torch.nn.Linear(1, 1)\n"

FAULTS = {
    f"{PARSER}p.add_argument('--epochs', type=int)\np.parse_args()": "t.py: unrecognized arguments: --rate 1",
    f"{PARSER}p.add_argument('--rates', type=int)\np.add_argument('name')\np.parse_args()": (
        "t.py: the following arguments are required: name"
    ),
    f"{PARSER}p.add_argument('--rate', type=int, choices=[2, 3])\np.parse_args()": (
        "t.py: argument --rate: invalid choice: 1 (choose from 2, 3)"
    ),
    f"{PARSER}g = p.add_mutually_exclusive_group(required=True)\ng.add_argument('--a', action='store_true')\n"
    "p.add_argument('--rate')\np.parse_args()": "t.py: one of the arguments --a is required",
    f"{PARSER}p.add_argument('--rate')\na = p.parse_args()\nopen(a.rate)": "t.py:5: 1: no such file",
    "import sys\nopen(sys.argv[2])": "t.py:2: 1: no such file",
    "import sys\nopen(sys.argv[3], 'rb')": (
        "t.py:2: the program reads the file that argument 3 names, but the command has 2 arguments"
    ),
    "import pandas as pd\nframe = pd.read_csv('data/tarin.csv')": (
        "t.py:2: data/tarin.csv: no such file (did you mean train.csv?)"
    ),
    "from pathlib import Path\ndef main():\n    print((Path('data') / 'x.txt').read_text())\nmain()": (
        "t.py:3: data/x.txt: no such file"
    ),
    "n = int(input('n? '))": "t.py:1: input() waits for keyboard input, which a job does not get",
    "import pdb\npdb.set_trace()": (
        "t.py:2: pdb.set_trace() waits for keyboard input, which a job does not get"
    ),
    "import subprocess\nsubprocess.run(['ruby', 'x.rb'])": "t.py:2: x.sif has no command `ruby`",
    "import subprocess as sp\ndef main():\n    sp.check_call(('mpiexec', '-n', '4', 'x'))\nmain()": (
        "t.py:3: each of the 2 ranks would run `mpiexec`, which starts more ranks"
    ),
    f"{NET}net.cuda()": "t.py:3: `net.cuda()` needs a GPU, but the job does not request GPUs",
    f"{NET}device = torch.device('cuda:0')\nnet.to(device)": (
        "t.py:4: `net.to(device)` needs a GPU, but the job does not request GPUs"
    ),
    "import torch.distributed as dist\ndist.init_process_group(backend='nccl')": (
        "t.py:2: `dist.init_process_group(backend='nccl')` needs a GPU, but the job does not request GPUs"
    ),
    "from .net import build": "t.py:1: Python does not find `.net` "
    "if the command starts the file by its path",
    "import numpy\nimport queue": "queue.py hides Python's module `queue`, which other modules import",
    "import horovod.tensorflow as hvd": "t.py:1: x.sif has no `tensorflow`, which `horovod.tensorflow` needs",
    "import deep": "t.py:1: x.sif has no module `deep`",
}

SOUND = (
    f"{PARSER}p.add_argument('--ra', dest='n')\np.add_argument('--rate')\np.parse_args()",
    f"{PARSER}p.add_argument('--epochs')\np.parse_known_args()",
    f"{PARSER}for name in ['--rate']:\n    p.add_argument(name)\np.parse_args()",
    f"{PARSER}def more(q):\n    q.add_argument('--rate')\nmore(p)\np.parse_args()",
    f"{PARSER}if True:\n    p.add_argument('--rate')\np.parse_args()",
    f"{PARSER}p.add_argument('--rate')\na = p.parse_args()\nopen(a.rate, 'w')",
    f"{PARSER}p.add_argument('--rate', type=lambda t: 1 / int(t))\np.parse_args()",
    "import os\nif os.path.exists('a.csv'):\n    open('a.csv')",
    "try:\n    open('a.csv')\nexcept OSError:\n    pass",
    "open('new.csv', 'w').write('1')\nopen('new.csv').read()",
    "open('data/train.csv')\nopen('/scratch/all/a.csv')",
    "import os\nos.chdir('data')\nopen('train.csv')",
    "def resume():\n    open('last.pt')\nprint(1)",
    "import sys\nif len(sys.argv) > 5:\n    open(sys.argv[5])",
    "def input(text):\n    return text\ninput('n? ')",
    f"{NET}if torch.cuda.is_available():\n    net.cuda()",
    f"{NET}device = 'cuda' if torch.cuda.is_available() else 'cpu'\nnet.to(device)",
    "import subprocess\nsubprocess.run(['make', '-j'])\nsubprocess.run('ruby x.rb', shell=True)",
    f"{NET}net.to('cpu')\ntorch.cuda.manual_seed(1)",
)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    for variable in ("XDG_STATE_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(variable, str(tmp_path / "elsewhere"))
    here = tmp_path / "work"
    (here / "data").mkdir(parents=True)
    (here / "data" / "train.csv").write_text("1\n")
    (here / "net.py").write_text("build = 1\n")
    (here / "queue.py").write_text("Queue = 1\n")
    (here / "src").mkdir()
    (here / "src" / "deep.py").write_text("")
    monkeypatch.chdir(here)
    return here


def found(words, *, gpus=False, tensorflow=None, **said):
    job = JobFile(command=tuple(words), nodes=2, **said)
    code = code_of(job, Flags())
    return findings(
        code,
        job,
        "x.sif",
        IMAGE,
        ImageFacts(path="x.sif", format="sif", architecture="x86_64", glibc="2.36", tensorflow=tensorflow),
        gpus=gpus,
    )


def of_text(text, **said):
    Path("t.py").write_text(text)
    return found(["python", "t.py", "--rate", "1"], **said)


@every_row("text", FAULTS)
def test_a_need_that_the_job_does_not_meet_is_named(text):
    assert FAULTS[text] in [one.message for one in of_text(text)]


@every_row("text", SOUND)
def test_a_program_that_may_run_has_no_fault(text):
    assert [one.message for one in of_text(text)] == []


def test_gpus_that_the_job_asks_for_are_no_fault():
    assert of_text(f"{NET}net.cuda()", gpus=True) == []


def test_what_a_shell_gives_a_program_is_not_judged(folder):
    (folder / "run.sh").write_text("python t.py < data/train.csv\n")
    (folder / "t.py").write_text(f"{PARSER}p.add_argument('--a', required=True)\np.parse_args()\ninput()\n")
    assert found(["bash", "run.sh"]) == []


def test_a_module_in_another_folder_is_found_by_the_option_that_is_named():
    assert of_text("import deep")[0].fix.startswith("give `--env PYTHONPATH=src`: src has the module")
    assert of_text("import deep", env={"PYTHONPATH": "src"}) == []


def test_a_relative_import_is_launched_as_a_module(folder):
    (folder / "pkg").mkdir()
    (folder / "pkg" / "train.py").write_text("from . import model\n")
    (folder / "pkg" / "model.py").write_text("")
    fault = found(["python", "pkg/train.py", "--n", "1"])[0]
    assert fault.fix == "toolkit launch … -- python -m pkg.train --n 1"
    assert found(["python", "-m", "pkg.train"]) == []


EXECUTED = {
    "#!/usr/bin/env bash\r\npython t.py\r\n": "./job has Windows line endings",
    "#!/home/me/conda/bin/python\nprint(1)\n": (
        "./job starts with `#!/home/me/conda/bin/python`, but x.sif does not have this interpreter"
    ),
    "#!/usr/bin/env -S ruby -w\n": "./job starts with `#!/usr/bin/env -S ruby -w`, "
    "but x.sif does not have this interpreter",
    "#!/bin/bash\nmodule load gcc\npython t.py\n": "./job: x.sif has no command `module`",
}
FINE = (
    "#!/opt/venv/bin/python\nprint(1)\n",
    "#!/usr/bin/env python3\nprint(1)\n",
    "#!/bin/sh\nif command -v ruby; then ruby x; fi\nbuild() { make; }\nbuild\npython t.py || ruby t.rb\n",
)


@every_row("text", EXECUTED)
def test_a_file_that_the_image_cannot_execute_is_refused(text):
    Path("job").write_bytes(text.encode())
    Path("job").chmod(0o755)
    assert [one.message for one in found(["./job"])] == [EXECUTED[text]]


@every_row("text", FINE)
def test_a_file_that_the_image_can_execute_is_accepted(text):
    Path("job").write_bytes(text.encode())
    Path("job").chmod(0o755)
    assert found(["./job"]) == []


BINARIES = {
    "other processors": ({"machine": 183}, "./job is a program for aarch64, but x.sif is for x86_64"),
    "a newer C library": (
        {"needed": ("libc.so.6",), "versions": ("GLIBC_2.4", "GLIBC_2.38")},
        "./job needs glibc 2.38, but x.sif has 2.36",
    ),
    "an absent library": (
        {"needed": ("libc.so.6", "libmpi.so.40")}, "./job needs libmpi.so.40, which x.sif does not have"
    ),
    "its folder": ({"needed": ("libmpi.so.40",), "runpath": "$ORIGIN/lib"}, None),
    "libraries of the image": ({"needed": ("libc.so.6",), "versions": ("GLIBC_2.36",)}, None),
}  # fmt: skip


@every_row("name", BINARIES)
def test_a_compiled_program_is_compared_with_the_image(name):
    given, message = BINARIES[name]
    Path("job").write_bytes(elf(**given))
    Path("job").chmod(0o755)
    assert [one.message for one in found(["./job"])] == ([message] if message else [])
    if "needed" in given and not given.get("versions"):
        assert found(["./job"], env={"LD_LIBRARY_PATH": "/work/lib"}) == []


def test_the_project_is_the_marked_folder_around_all_files_of_the_program(folder):
    (folder / "scripts").mkdir()
    (folder / "scripts" / "train.py").write_text("print(open('../data/train.csv').read())\n")
    (folder / "setup.cfg").write_text("")
    code = code_of(JobFile(command=("python", "scripts/train.py")), Flags())
    assert code.root == folder


def test_a_file_outside_the_project_is_refused_with_the_folder_that_holds_both(folder, monkeypatch):
    (folder / "scripts").mkdir()
    (folder / "scripts" / "train.py").write_text("import sys\nsys.path.append('..')\nimport net\n")
    monkeypatch.chdir(folder / "scripts")
    code = code_of(JobFile(command=("python", "train.py")), Flags())
    with pytest.raises(BadInput) as caught:
        copy_project(code, Flags(), "/work/me", Silent())
    assert str(caught.value).startswith("../net.py is not copied to the cluster: the file is outside")
    assert caught.value.fix.startswith("give `--project ..`")
    moved = code_of(JobFile(command=("python", "train.py")), Flags(project=".."))
    assert copy_project(moved, Flags(project=".."), "/work/me", Silent()).start == "project/scripts"


class _Cluster:
    """A fake cluster on which only the given files exist."""

    place = "cluster demo"

    def __init__(self, *files):
        self.files, self.questions = files, 0

    def run(self, command):
        """Run the command in a local shell whose ``test`` finds only the files of the fake cluster."""
        self.questions += 1
        known = "|".join(map(shlex.quote, self.files)) or "x"
        test = f"test() {{ case $2 in {known}) ;; *) return 1;; esac; }}; "
        shell, option, script, *words = command.words
        done = subprocess.run([shell, option, test + script, *words], capture_output=True, check=False)
        return Completed(command, done.returncode, done.stdout, done.stderr)


def refusal(text, cluster):
    Path("t.py").write_text(text)
    code = code_of(JobFile(command=("python", "t.py")), Flags())
    try:
        check_desk_paths(code, Flags(), cluster)
    except BadInput as error:
        return str(error), error.fix
    return None


def test_an_absolute_path_of_this_machine_is_refused_unless_the_cluster_has_it(folder):
    table = folder / "data" / "train.csv"
    text = f"import numpy as np\nx = np.loadtxt('{table}')\n"
    assert refusal(text, _Cluster()) == (
        f"t.py:2: {table} is a file on this machine; cluster demo does not have it",
        "use the relative path instead: data/train.csv",
    )
    assert refusal(text, _Cluster(str(table))) is None
    again = f"y = np.loadtxt('{table}')\nz = np.loadtxt('{folder / 'data' / 'test.csv'}')\n"
    (folder / "data" / "test.csv").write_text("1\n")
    cluster = _Cluster(str(table))
    assert refusal(text + again, cluster)[0].startswith(f"t.py:4: {folder / 'data' / 'test.csv'} is a file")
    assert cluster.questions == 1
    beside = "from pathlib import Path\nprint((Path(__file__).parent / 'data' / 'train.csv').read_text())\n"
    assert refusal(beside, _Cluster()) is None


def test_an_absolute_path_among_the_words_is_refused_outside_the_project(folder, tmp_path):
    (tmp_path / "other.csv").write_text("1\n")
    (folder / "t.py").write_text("print(1)\n")
    for path, refused in ((tmp_path / "other.csv", True), (folder / "data" / "train.csv", False)):
        code = code_of(JobFile(command=("python", "t.py", f"--data={path}")), Flags())
        with pytest.raises(BadInput) if refused else nullcontext():
            check_desk_paths(code, Flags(), _Cluster())


def test_a_notebook_is_refused_as_one(folder):
    (folder / "n.ipynb").write_text('{"cells": []}')
    assert [one.message for one in found(["python", "n.ipynb"])] == ["n.ipynb: Python does not run notebooks"]


def test_a_pool_of_mpi4py_gets_the_module_that_starts_it(folder):
    (folder / "t.py").write_text(
        "from mpi4py.futures import MPIPoolExecutor\nMPIPoolExecutor().map(abs, [1])\n"
    )
    job = JobFile(command=("python", "t.py"), nodes=2)
    with pytest.raises(CheckFailed) as caught:
        check_ranks(job, code_of(job, Flags()), Flags())
    assert "`python -m mpi4py.futures`" in caught.value.fix


OLD = "import tensorflow as tf\nx = tf.compat.v1.placeholder('float32')\nsession = tf.Session()\n"


def test_a_script_for_tensorflow_1_is_refused_with_tensorflow_2():
    messages = {
        version: [one.message for one in of_text(OLD, tensorflow=version)] for version in ("2.15.1", None)
    }
    assert "t.py:3: the image's TensorFlow 2.15.1 has no `tf.Session`" in messages["2.15.1"]
    assert not [one for one in messages[None] if "tf.Session" in one]
    bound = OLD.replace("x =", "tf = tf.compat.v1\nx =")
    assert not [one for one in of_text(bound, tensorflow="2.15.1") if "tf.Session" in one.message]


def test_a_command_of_the_gpu_driver_needs_gpus_and_not_the_image():
    (fault,) = found(["nvidia-smi", "-L"])
    assert fault.message == "x.sif has no command `nvidia-smi`, and the job does not request GPUs"
    assert found(["nvidia-smi", "-L"], gpus=True) == []


def test_a_package_of_an_index_gets_the_commands_that_add_it(folder):
    create = (
        "`toolkit env create -f requirements.txt --over x.sif -o my.env`, and launch with --env-image my.env"
    )
    assert (
        of_text("import hydra", image="x.sif")[0].fix
        == f"write hydra-core into requirements.txt, then run {create}"
    )
    assert of_text("import mynet", image="x.sif")[0].fix.startswith(
        "copy mynet.py into the folder of the script; or write mynet"
    )
    (folder / "requirements.txt").write_text("hydra-core\n")
    assert of_text("import hydra", image="x.sif")[0].fix == f"run {create}"


def test_a_prefix_and_a_compiler_that_the_image_lacks_are_refused(folder):
    (folder / "t.py").write_text("print(1)\n")
    assert [one.message for one in found(["time", "python", "t.py"])] == ["x.sif has no command `time`"]
    assert "x.sif has `mpifort` but no compiler" in [one.message for one in found(["mpifort", "a.f90"])]


def test_a_word_of_the_shell_among_the_words_is_refused():
    Path("t.py").write_text("print(1)\n")
    assert [one.message for one in found(["python", "t.py", ">", "out"])] == [
        "the program would get `>` as an argument, because no shell reads the command"
    ]


@every_row("word", ["$SCRATCH/data", "--endpoint=$(hostname):29500", "${SLURM_NNODES}", "a,$USER"])
def test_a_variable_that_no_shell_expands_is_refused(word):
    Path("t.py").write_text("print(1)\n")
    fault = f"the program would get `{word}` unchanged, because no shell reads the command"
    assert [one.message for one in found(["python", "t.py", word])] == [fault]
    assert found(["sh", "-c", f"python t.py {word}"]) == []


@every_row("word", ["${now:%Y}", "${oc.env:HOME}", "a$b", "$", "US$5", "\\d+$"])
def test_a_dollar_of_the_program_is_allowed(word):
    Path("t.py").write_text("print(1)\n")
    assert found(["python", "t.py", word]) == []
