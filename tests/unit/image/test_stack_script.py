"""Test the stack description that an image build writes, with the MPI's own version text."""

import ctypes
import importlib.util
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from tests.unit.tables import every_row
from toolkit.data import shipped_folder


@pytest.fixture
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("stack_script", shipped_folder("containers") / "stack.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _program(folder: Path, name: str, says: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\ncat <<'END'\n{says}\nEND\n")
    (folder / name).chmod(0o755)


@every_row(
    ("program", "says", "expected"),
    [
        ("ompi_info", "Open MPI v4.1.4\n\nhttps://www.open-mpi.org/community/help/", ("openmpi", "4.1.4")),
        ("mpichversion", "MPICH Version:    \t4.0.2\nMPICH Device:\tch4:ucx", ("mpich", "4.0.2")),
    ],
)
def test_asks_the_mpi_that_is_there(
    script: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    program: str,
    says: str,
    expected: tuple[str, str],
) -> None:
    _program(tmp_path, program, says)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert script.mpi() == expected


@every_row("folder", ["lib", "lib/openmpi"])
def test_asks_the_libraries_that_came_with_the_mpi(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    _program(tmp_path / "mpi/bin", "mpirun", "")
    library = tmp_path / "mpi" / folder / "libpmix.so.2"
    library.parent.mkdir(parents=True)
    library.touch()
    asked = []

    def load(path: str) -> SimpleNamespace:
        asked.append(path)
        return SimpleNamespace(PMIx_Get_version=lambda: b"OpenPMIx 4.2.2, repo rev: v4.2.2")

    monkeypatch.setattr(ctypes, "CDLL", load)
    monkeypatch.setenv("PATH", f"{tmp_path}/mpi/bin")
    assert script.own("libpmix.so.2", "PMIx_Get_version") == "4.2.2"
    assert script.own("libucp.so.0", "ucp_get_version_string") == ""
    assert asked == [str(library)]


def test_a_system_without_mpirun_has_no_libraries_of_its_own(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert script.own("libpmix.so.2", "PMIx_Get_version") == ""


def test_reads_the_version_that_a_library_of_the_mpi_carries(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _program(tmp_path / "mpi/bin", "mpirun", "")
    library = tmp_path / "mpi/lib/openmpi/libhwloc.so.15"
    library.parent.mkdir(parents=True)
    library.write_bytes(b"\x7fELF 1.2.3.4 \0hwloc\x002.7.1\0")
    monkeypatch.setenv("PATH", f"{tmp_path}/mpi/bin")
    assert script.written("libhwloc.so.15") == "2.7.1"
    assert script.written("libucp.so.0") == ""
