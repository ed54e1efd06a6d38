"""Test that toolkit starts a container only to find facts that the image does not show, and shows the
command.
"""

import shlex
from contextlib import contextmanager

import pytest

from tests.unit.engine.examples import HOST, without
from tests.unit.image.sifs import elf, sif, squashfs
from tests.unit.tables import every_row
from toolkit.errors import CheckFailed, Missing
from toolkit.image.inspect import inspect
from toolkit.job import contained
from toolkit.job.contained import UndecidedImage, read, undecided_variables, with_answer
from toolkit.job.places import HostOptions
from toolkit.model.rank import WHOLE_IMAGE, RankView
from toolkit.run.command import Completed

MODULES = "module load openmpi\nexport MPICH_A=1\n"
ENV = "/.singularity.d/env/90-environment.sh"


class Heard:
    def __init__(self):
        self.steps = []

    def step(self, line):
        self.steps.append(line)


class Machine:
    place = "login"

    def __init__(self, answers):
        self.answers, self.calls = answers, []

    def run(self, command):
        self.calls.append(command.words)
        status, text = self.answers.get(command.words[0], (0, ""))
        if status is None:
            raise Missing("gone")
        return Completed(command, status, text.encode(), b"srun: error: no free node\n" if status else b"")

    def close(self):
        self.calls.append(("close",))


def image(root, script):
    files = {
        "/bin/sh": b"#!",
        ENV: script.encode(),
        "/opt/a/lib/libmpi.so.40": elf(soname="libmpi.so.40", text=b"Open MPI v4.1.4"),
        "/opt/app": elf(needed=("libmpi.so.40",)),
    }
    file = root / "my.sif"
    file.write_bytes(sif(squashfs(files)))
    return file


@contextmanager
def asking(monkeypatch, root, script=MODULES, host=HOST, remote=False, **answers):
    machine = Machine(answers)
    monkeypatch.setattr(HostOptions, "open", lambda _: machine)
    file = image(root, script)
    host_options = HostOptions("login" if remote else None, None, None)
    heard = Heard()
    yield UndecidedImage(inspect(str(file)), file, host, host_options, "gpu"), heard, machine


def test_a_module_that_is_loaded_is_asked_for_and_the_answer_is_what_a_rank_sees(monkeypatch, tmp_path):
    said = "PATH=/opt/a/bin:/bin\nLD_LIBRARY_PATH=/opt/a/lib\nHOME=/home/ada\n"
    with asking(monkeypatch, tmp_path, srun=(0, said)) as (asked, heard, machine):
        assert undecided_variables(asked.image) == ("LD_LIBRARY_PATH", "PATH")
        view = with_answer(RankView(hidden=("/home",)), asked, heard)
    assert view.hidden == ("/home",)
    (call,) = (c for c in machine.calls if c[0] == "srun")
    assert call[-2:] == (str((tmp_path / "my.sif").resolve()), "env")
    assert {"--nodes=1", "--ntasks=1", "--time=1", "--immediate=30", "--partition=gpu"} <= set(call)
    assert shlex.join(call) in heard.steps[0]
    assert "--no-run" in heard.steps[0]
    seen = inspect(str(tmp_path / "my.sif"), view=view)
    assert seen.environment["LD_LIBRARY_PATH"] == "/opt/a/lib"
    assert seen.environment["MPICH_A"] == "1"  # from the image, not from the container
    assert "HOME" not in seen.environment
    assert not undecided_variables(seen)
    assert "container on a node" in seen.evidence["environment.LD_LIBRARY_PATH"]
    assert asked.image.programs.get("/opt/app", "") == ""
    assert seen.programs["/opt/app"] == "/opt/a/lib/libmpi.so.40"


@every_row(
    "case",
    [
        {"script": "export LD_LIBRARY_PATH=/opt/a/lib\n"},
        {"host": without(HOST, "slurm")},
        {"host": without(HOST, "runtime")},
    ],
)
def test_nothing_is_started_where_nothing_is_unknown_or_nothing_can_start_it(case):
    with pytest.MonkeyPatch.context() as patch, tempfolder() as root:
        with asking(patch, root, **case) as (asked, heard, machine):
            assert with_answer(WHOLE_IMAGE, asked, heard) is WHOLE_IMAGE
        assert machine.calls == heard.steps == []


@contextmanager
def tempfolder():
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


@every_row(("status", "said"), [(1, "no free node"), (None, "")])
def test_without_an_answer_the_image_stays_unknown(status, said):
    with pytest.MonkeyPatch.context() as patch, tempfolder() as root:
        with asking(patch, root, srun=(status, "")) as (asked, heard, machine):
            assert with_answer(WHOLE_IMAGE, asked, heard) is WHOLE_IMAGE
        assert machine.calls[-1] == ("close",)
        assert said in heard.steps[-1]


def test_an_image_that_is_not_on_the_cluster_is_not_copied_there(monkeypatch, tmp_path):
    monkeypatch.setattr(contained, "directory", lambda *_, **__: "/work/ada/toolkit")
    with asking(monkeypatch, tmp_path, remote=True, test=(1, "")) as (asked, heard, machine):
        assert with_answer(WHOLE_IMAGE, asked, heard) is WHOLE_IMAGE
    test, close = machine.calls
    assert test[:2] == ("test", "-r")
    assert test[2].startswith("/work/ada/toolkit/images/my-")
    assert close == ("close",)
    assert "the image is not on login" in heard.steps[-1]


def test_an_image_that_may_not_start_is_not_started(monkeypatch, tmp_path):
    def refuse(*_):
        raise CheckFailed("its signature is wrong")

    monkeypatch.setattr(contained, "clear", refuse)
    with asking(monkeypatch, tmp_path) as (asked, heard, machine):
        assert with_answer(WHOLE_IMAGE, asked, heard) is WHOLE_IMAGE
    assert machine.calls == []
    assert heard.steps == ["my.sif: toolkit did not start the container: its signature is wrong"]


def test_a_variable_of_several_lines_gives_its_first():
    assert read("A=1\nB=x\ny\nBASH_FUNC_module%%=() { eval 1\n}\nC=\n") == {"A": "1", "B": "x", "C": ""}
