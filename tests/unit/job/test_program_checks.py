"""Test that toolkit finds faults of a program before it submits the job."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.tables import every_row
from toolkit.errors import CheckFailed
from toolkit.image.software.contents import Contents
from toolkit.job.program_check import program_faults
from toolkit.job.project.checks import findings, refuse, with_python
from toolkit.job.project.code import code_of
from toolkit.job.project.plain import OF_SCRIPT, without_trainer
from toolkit.job.request.flags import Flags
from toolkit.launch.request.layers import MergedJob
from toolkit.model.facts import ImageFacts
from toolkit.model.jobfile import JobFile
from toolkit.model.progress import Silent
from toolkit.program.script import read_text

IMAGE = Contents(
    frozenset({"python", "python3", "sh", "bash", "mpirun"}),
    frozenset({"numpy", "tensorflow", "horovod", "yaml"}),
)


def facts_of(python):
    return ImageFacts(path="x.sif", format="sif", python=python)


FAULTS = {
    "import numpyy as np": "t.py:1: x.sif has no module `numpyy` (did you mean numpy?)",
    "import cv2": "t.py:1: x.sif has no module `cv2`",
    "from titel import build": "t.py:1: x.sif has no module `titel`",
    "import lib.nothing": "t.py:1: the project has no module `lib.nothing`",
    "def f(:\n    pass": "t.py:1: invalid syntax: def f(:",
    "x = 1\npritn(x)": "t.py:2: the name `pritn` is not defined (did you mean print?)",
    "get_ipython().system('pip install x')": "t.py:1: the name `get_ipython` is not defined",
    "def f():\n    titel.fit()\ntitle = 1": "t.py:2: the name `titel` is not defined (did you mean title?)",
}

SOUND = (
    "import numpy, yaml, os, json",
    "try:\n    import cv2\nexcept ImportError:\n    cv2 = None",
    "from lib.net import build",
    "try:\n    unicode\nexcept NameError:\n    unicode = str",
    "from numpy import *\nprint(array([1]))",
    "for i in range(3):\n    print(i)\nprint([j for j in range(i)], __file__)",
    "def f(a, *b, c=1, **d):\n    global e\n    e = lambda g: g + a\n    return e, b, c, d",
    "match 1:\n    case [*y]:\n        print(y)\n    case {**z}:\n        print(z)",
    "globals()['x'] = 1\nprint(x)",
    "import numpy as np\nnp.array\nif (n := 3):\n    print(n)",
)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "net.py").write_text("import numpy\n")
    return tmp_path


def found(text, *words, offered=IMAGE, python="3.11.2", **said):
    Path("t.py").write_text(text)
    job = JobFile(command=words or ("python", "t.py"), **said)
    code = code_of(job, Flags())
    return [one.message for one in findings(code, job, "x.sif", offered, facts_of(python))]


@every_row("text", FAULTS)
def test_a_fault_is_named_with_its_line(text):
    assert found(text)[:1] == [FAULTS[text]]


@every_row("text", SOUND)
def test_a_sound_program_has_no_fault(text):
    assert found(text) == []


STARTS = {
    (
        "mpirun",
        "-np",
        "2",
        "python",
        "t.py",
    ): "each of the 2 ranks would run `mpirun`, which starts more ranks",
    ("srun", "python", "t.py"): "each of the 2 ranks would run `srun`, which starts more ranks",
    ("horovodrun", "-np", "2", "x"): "each of the 2 ranks would run `horovodrun`, which starts more ranks",
    ("python", "tt.py"): "tt.py: no such file (did you mean t.py?)",
    ("bash", "rum.sh"): "rum.sh: no such file (did you mean run.sh?)",
    ("./tt.py",): "./tt.py: no such file (did you mean ./t.py?)",
    ("./t.py",): "./t.py is not executable",
    ("python", "-m", "lib.nothing"): "the project has no module `lib.nothing`",
    (
        "python",
        "-m",
        "numpyy",
    ): "neither x.sif nor the project has a module `numpyy` (did you mean numpy?)",
    ("python t.py",): "x.sif has no command `python t.py` (did you mean python?)",
    ("apptainer", "exec", "x.sif", "t"): "x.sif has no command `apptainer`",
    (
        "OMP_NUM_THREADS=4",
        "python",
        "t.py",
    ): "`OMP_NUM_THREADS=` sets a variable, but toolkit would start this word as the program",
    ("bash", "batch.sh"): "batch.sh: each of the 2 ranks would run `srun`, which starts more ranks",
    ("./batch.sh",): "batch.sh: each of the 2 ranks would run `srun`, which starts more ranks",
    ("cd", "lib"): "`cd` is a command of the shell, not a program",
    ("module", "load", "x"): "`module` is a command of the shell, not a program",
    ("exec", "python", "t.py"): "`exec` is a command of the shell, not a program",
    ("for", "i", "in", "1", "2"): "`for` is a command of the shell, not a program",
    ("pushd", "lib"): "`pushd` is a command of the shell, not a program",
    ("command", "python", "t.py"): "x.sif has no command `command`",
}


@every_row("words", STARTS)
def test_a_start_that_cannot_work(words, folder):
    (folder / "run.sh").write_text("true\n")
    (folder / "batch.sh").write_text(
        "#!/bin/sh\n#SBATCH -N 2\nmodule load x\nexport A=1\nsrun -n 2 python t.py\n"
    )
    (folder / "batch.sh").chmod(0o755)
    assert found("", *words, nodes=2)[:1] == [STARTS[words]]


@every_row(
    "words",
    [
        ("python", "-m", "lib.net"),
        ("python", "-m", "http.server"),
        ("python", "-m", "horovod.runner"),
        ("bash", "run.sh"),
        ("./run.sh",),
        ("./run.py",),
        ("bash", "-c", "x"),
        ("python", "-"),
        ("python", "/opt/x.py"),
        ("lib/../run.sh",),
    ],
)
def test_a_start_that_works(words, folder):
    (folder / "run.sh").write_text("true\n")
    (folder / "run.py").write_text("import numpy\n")
    for name in ("run.sh", "run.py"):
        (folder / name).chmod(0o755)
    assert found("", *words) == []


def test_a_pipe_that_is_named_like_a_script_is_not_read(folder):
    os.mkfifo(folder / "pipe.sh")
    assert not any("own ranks" in fault for fault in found("", "bash", "pipe.sh", nodes=2))


def test_one_rank_may_start_ranks_inside_its_container():
    assert found("", "mpirun", "-np", "2", "python", "t.py") == []


@every_row(
    ("program", "hint"),
    [
        ("srun", "toolkit starts the ranks"),
        ("docker", "the container from `--image`"),
        ("a b", "separately: -- a b"),
        ("a && b", "run the command in a shell: -- sh -c 'a && b'"),
    ],
)
def test_a_command_of_a_launch_has_its_own_hint(program, hint):
    Path("t.py").write_text("")
    job = JobFile(command=(program, "t.py"))
    (fault,) = findings(code_of(job, Flags()), job, "x.sif", IMAGE, facts_of("3.11.2"))
    assert hint in fault.fix


def test_a_command_that_the_image_has_not():
    bare = Contents(frozenset({"python3", "sh"}), frozenset())
    assert found("", offered=bare) == ["x.sif has no command `python`"]
    assert found("", "mpirum", "x") == ["x.sif has no command `mpirum` (did you mean mpirun?)"]
    assert found("", "/opt/x", "y") == found("", "sh", "-c", "x") == []
    code = code_of(JobFile(command=("python", "t.py")), Flags())
    assert with_python(code, bare).words == ("python3", "t.py")
    assert with_python(code, IMAGE).words == ("python", "t.py")


def test_what_cannot_be_known_is_no_fault():
    assert found("import cv2", offered=None) == []
    assert found("import cv2", offered=Contents(IMAGE.commands, IMAGE.modules, whole=False)) == []
    assert found("import cv2", env={"PYTHONPATH": "/big/packages"}) == []
    assert found("import cv2", binds=("/big/packages",)) == []
    assert found("def f(:\n  pass", python="3.99.1") == []
    # Every release of Python 3 rejects these lines.
    assert "was never closed" in found("print(1\n", python="3.99.1")[0]
    assert "unexpected indent" in found("a = 1\n  b = 2\n", python="3.99.1")[0]
    assert found('print(f"{d["a"]}"\n', python="3.99.1") == []
    assert found('def f():\n    x = foo(a,\n        f"{a["b\\n"]}")\n', python="3.99.1") == []


def test_force_shows_the_faults_and_launches():
    job = JobFile(command=("python", "t.py"))
    Path("t.py").write_text("import cv2, numpyy")
    faults = findings(code_of(job, Flags()), job, "x.sif", IMAGE, facts_of(None))
    with pytest.raises(CheckFailed, match="no module `cv2`") as error:
        refuse(faults, Flags(), Silent())
    assert "opencv-python-headless" in error.value.fix
    assert "numpyy" in error.value.detail[0]
    refuse(faults, Flags(force=True), Silent())
    refuse([], Flags(), Silent())


def test_undefined_names_are_told_once():
    assert [one.line for one in read_text("a\na\nb\n").undefined] == [1, 3]


@every_row(
    ("words", "fix"),
    [
        (["python", "serve.py"], "write `/app/serve.py`, the file in the image"),
        (["python", "./serve.py"], "write `/app/serve.py`, the file in the image"),
        (["python", "-m", "vllm.server"], "give `--env PYTHONPATH=/workspace`, the image folder"),
        (["python", "-c", "import vllm"], "give `--env PYTHONPATH=/workspace`, the image folder"),
    ],
)
def test_a_file_in_the_folder_in_which_docker_starts_is_named(folder, words, fix):
    offered = replace(IMAGE, applications={"serve.py": "/app", "vllm": "/workspace"})
    job = JobFile(command=tuple(words))
    (fault,) = findings(code_of(job, Flags()), job, "x.sif", offered, facts_of("3.11"))
    assert fault.fix.startswith(fix)


def test_a_trainer_needs_an_image_with_the_trainers():
    def said(contents=IMAGE, **changes):
        job = JobFile(trainer="mnist", **changes)
        return [fault.message for fault in program_faults(job, facts_of("3.11"), contents, None, gpus=False)]

    assert said() == ["x.sif does not contain toolkit's trainers, which mnist needs"]
    assert said(replace(IMAGE, modules=IMAGE.modules | {"toolkit"})) == []
    assert said(replace(IMAGE, whole=False)) == said(binds=["/sw/toolkit"]) == []
    assert program_faults(JobFile(), facts_of("3.11"), IMAGE, None, gpus=False) == ()


def test_a_name_does_not_hide_that_toolkit_wrote_the_command(tmp_path):
    script = tmp_path / "train.py"
    script.write_text("print('hello')\n")
    given = JobFile(trainer=str(script), name="night")
    merged = without_trainer(MergedJob(given, {"trainer": "command line", "name": "--name"}, ""))
    assert merged.job.command == ("python", str(script))
    assert (merged.origins["command"], merged.origins["name"]) == (OF_SCRIPT, "--name")
