"""Test the trial program: its choice, its compilation for old C libraries, and its output without MPI."""

import ctypes.util
import platform
import re
import shutil
import subprocess
import sys

import pytest
from elftools.elf.elffile import ELFFile

from tests.unit.engine.examples import IMAGE, with_, without
from tests.unit.tables import every_row
from toolkit.data import shipped_folder
from toolkit.errors import Missing
from toolkit.launch import trial
from toolkit.run.command import Completed
from toolkit.run.local import LocalRunner

LIVE = shipped_folder("containers") / "live"


class Bare:
    """A fake machine without a compiler."""

    place = "cluster bare"

    def run(self, command):
        if command.words[0] not in {"mktemp", "rm"}:
            raise Missing("no compiler")
        return Completed(command, 0, b"/nowhere\n", b"")

    def write(self, *_):
        pass


@pytest.fixture
def no_compiler(monkeypatch):
    monkeypatch.setattr(trial, "_COMPILERS", ("no-such-compiler",))


def names(image, runner=None):
    return [file.name for file in trial.programs(image, runner or LocalRunner())]


def test_both_programs_go_along_where_something_compiles():
    image = with_(IMAGE, architecture=platform.machine())
    assert names(image) == ["trial.sh", "trial.py", "trial"]
    assert names(without(image, "python")) == ["trial.sh", "trial.py", "trial"]


def test_python_alone_does_where_nothing_compiles(no_compiler):
    assert names(IMAGE, Bare()) == ["trial.sh", "trial.py"]


def test_an_image_without_python_needs_a_compiler(no_compiler):
    with pytest.raises(Missing, match="no C compiler"):
        names(without(IMAGE, "python"), Bare())


def test_an_image_of_another_c_library_needs_python():
    musl = without(IMAGE, "glibc", "the C library is musl")
    assert names(musl) == ["trial.sh", "trial.py"]
    with pytest.raises(Missing, match="musl"):
        names(without(musl, "python"))


def test_a_program_for_another_processor_is_not_compiled_here():
    assert names(with_(IMAGE, architecture="riscv64")) == ["trial.sh", "trial.py"]


def test_the_library_is_the_one_that_programs_load():
    assert trial.library(IMAGE, "srun-pmix") == IMAGE.mpi.library
    assert trial.library(with_(IMAGE, mpi=with_(IMAGE.mpi, soname="libmpi.so.40")), "bind") == "libmpi.so.40"
    assert trial.library(IMAGE, "bind") == "libmpi.so.40.30.4"
    with pytest.raises(Missing, match="no MPI library"):
        trial.library(without(IMAGE, "mpi"), "srun-pmix")


def test_the_command_of_a_rank():
    assert trial.command("/job", "/lib/libmpi.so", 4) == ("sh", "/job/trial.sh", "/lib/libmpi.so", "4", "120")


def compiled(tmp_path):
    target = tmp_path / "trial"
    words = trial.compile_words("cc", platform.machine(), str(LIVE / "trial.c"), str(target))
    subprocess.run([*words, "-Wall", "-Wextra", "-Werror"], check=True, timeout=60)
    return target


def test_the_compiled_program_needs_no_newer_glibc_than_2_17(tmp_path):
    with compiled(tmp_path).open("rb") as file:
        elf = ELFFile(file)
        needed = {tag.needed for tag in elf.get_section_by_name(".dynamic").iter_tags("DT_NEEDED")}
        asked = [
            tuple(map(int, part.name.removeprefix("GLIBC_").split(".")))
            for _, parts in elf.get_section_by_name(".gnu.version_r").iter_versions()
            for part in parts
        ]
    assert needed == {"libc.so.6", "libdl.so.2"}
    assert max(asked) <= (2, 17)


@every_row("kind", ["c", "python", "sh"])
def test_a_library_that_is_not_there_is_told(tmp_path, kind):
    start = {
        "c": [str(compiled(tmp_path))],
        "python": [sys.executable, str(LIVE / "trial.py")],
        "sh": ["sh", str(LIVE / "trial.sh")],
    }[kind]
    done = subprocess.run([*start, "/no/libmpi.so", "2", "5"], capture_output=True, text=True, timeout=30)
    assert done.returncode == 5
    assert done.stdout.startswith("live: cannot load /no/libmpi.so")


@every_row("kind", ["c", "python"])
def test_a_library_without_mpi_in_it_is_told(tmp_path, kind):
    library = ctypes.util.find_library("c")
    start = [str(compiled(tmp_path))] if kind == "c" else [sys.executable, str(LIVE / "trial.py")]
    done = subprocess.run([*start, library, "2", "5"], capture_output=True, text=True, timeout=30)
    assert done.returncode == 5
    assert "live: cannot load MPI_Init" in done.stdout
    assert "Traceback" not in done.stderr


def test_without_python_and_program_the_starter_says_so(tmp_path):
    shutil.copy(LIVE / "trial.sh", tmp_path)
    done = subprocess.run(
        ["/bin/sh", str(tmp_path / "trial.sh"), "/x/libmpi.so", "2", "5"],
        capture_output=True,
        text=True,
        env={"PATH": str(tmp_path)},
        timeout=30,
    )
    assert done.returncode == 5
    assert "toolkit had no compiler" in done.stdout


@every_row(
    ("library", "expected"),
    [
        ("/opt/mpi/lib/libmpi.so.12", "/opt/mpi/lib:/before"),
        ("/usr/lib/x86_64-linux-gnu/libmpi.so.40", "/before"),
        ("/usr/lib64/libmpi.so", "/before"),
        ("libmpi.so.40", "/before"),
    ],
)
def test_the_folder_of_a_library_outside_the_loaders_own_is_searched(tmp_path, library, expected):
    shutil.copy(LIVE / "trial.sh", tmp_path)
    (tmp_path / "trial").write_text('#!/bin/sh\necho "$LD_LIBRARY_PATH"\n')
    (tmp_path / "trial").chmod(0o755)
    done = subprocess.run(
        ["/bin/sh", str(tmp_path / "trial.sh"), library, "2", "5"],
        capture_output=True,
        text=True,
        env={"PATH": "/nowhere", "LD_LIBRARY_PATH": "/before"},
        timeout=30,
    )
    assert done.stdout.strip() == expected


def test_the_python_program_uses_nothing_that_old_releases_lack():
    text = (LIVE / "trial.py").read_text("utf-8")
    assert not re.search(r"\bf[\"']", text)
    assert not re.search(r"^\s*\w+: \w+ =|:=|\bmatch \w+:", text, re.MULTILINE)
