"""Test that toolkit removes its temporary files, and later removes the files of killed processes."""

import os
import subprocess
import sys

import pytest

from toolkit.errors import CheckFailed
from toolkit.image.files import workspace
from toolkit.run.owner import host


@pytest.fixture
def dead_pid():
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("APPTAINER_TMPDIR", str(tmp_path))
    return tmp_path


def test_a_folder_goes_with_what_is_in_it(root):
    with workspace.folder() as made:
        (made / "archive").write_text("x")
    assert list(root.iterdir()) == []


def test_a_folder_goes_when_the_work_is_interrupted(root):
    with pytest.raises(KeyboardInterrupt), workspace.folder():
        raise KeyboardInterrupt
    assert list(root.iterdir()) == []


def test_a_dead_process_leaves_nothing_for_long(root, dead_pid):
    here = host()
    old = root / f"toolkit-sif.{here}.{dead_pid}.abc"
    old.mkdir()
    (old / "image.tar").write_text("x")
    with workspace.folder():
        assert not old.exists()


def test_what_a_living_process_or_another_machine_owns_is_left(root, dead_pid):
    kept = [
        root / f"toolkit-sif.{host()}.{os.getppid()}.abc",
        root / f"toolkit-sif.zz.{dead_pid}.abc",
    ]
    for path in kept:
        path.mkdir()
    with workspace.folder():
        assert all(path.exists() for path in kept)


def test_a_file_beside_its_target_is_hidden_and_removed(tmp_path):
    with workspace.beside(tmp_path / "a.sif") as part:
        assert part.name.startswith(".a.sif.")
        part.write_text("half")
    assert list(tmp_path.iterdir()) == []


def test_half_a_file_of_a_dead_process_is_removed(tmp_path, dead_pid):
    old = tmp_path / f".a.sif.{host()}.{dead_pid}.part"
    old.write_text("half")
    other = tmp_path / f".b.sif.{host()}.{dead_pid}.part"
    other.write_text("half")
    with workspace.beside(tmp_path / "a.sif"):
        assert not old.exists()
        assert other.exists()


def test_the_persons_temporary_folder_is_used(tmp_path, monkeypatch):
    monkeypatch.delenv("APPTAINER_TMPDIR", raising=False)
    monkeypatch.setenv("SINGULARITY_TMPDIR", str(tmp_path))
    assert workspace.temporary_root() == tmp_path


def test_a_temporary_folder_that_is_not_there_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("APPTAINER_TMPDIR", str(tmp_path / "gone"))
    with pytest.raises(CheckFailed, match="gone does not exist"), workspace.folder():
        pass


def test_too_little_space_is_told_with_both_figures(tmp_path):
    with pytest.raises(CheckFailed, match=r"has [\d.]+ [kMG]?B free, and the SIF needs at least "):
        workspace.require_space(tmp_path, 1 << 60, "the SIF", "make room")
    workspace.require_space(tmp_path, 1, "the SIF", "make room")
