"""Test the folder that ``toolkit image render`` writes for a build on another machine."""

import hashlib
from pathlib import Path

import msgspec
import pytest

from tests.unit.image.test_emit import every_file, making
from tests.unit.tables import every_row
from toolkit.errors import BadInput
from toolkit.image.builds import written
from toolkit.model.progress import Silent


@pytest.fixture
def bare(tmp_path, monkeypatch):
    """Return a build whose base image comes from a registry, and an empty file for each download."""
    made = making("mpi-only")
    base = msgspec.structs.replace(made.lock.base, published=f"debian@sha256:{'0' * 64}", packages=())
    made = msgspec.structs.replace(made, lock=msgspec.structs.replace(made.lock, base=base))
    made = msgspec.structs.replace(made, base=base.published)
    empty = tmp_path / "empty"
    empty.write_bytes(b"")
    return made, {file.sha256: empty for file in every_file(made.lock)}


def write(bare, folder, *, singularity=False):
    made, files = bare
    return written.write_folder(made, files, folder, singularity=singularity, jobs=2, tell=Silent())


def test_a_dockerfile_and_all_that_it_copies_are_written(bare, tmp_path):
    target = write(bare, tmp_path / "new")
    assert target == tmp_path / "new" / "Dockerfile"
    assert f"FROM debian@sha256:{'0' * 64} AS base" in target.read_text()
    for name in ("parts/stack.sh", "parts/stack.py", "papers/lock.json", "lib/toolkit/trainers/__init__.py"):
        assert (tmp_path / "new" / name).is_file()
    assert list((tmp_path / "new" / "packages").glob("openmpi-bin_*.deb"))


def test_a_definition_names_its_folder_so_that_it_builds_from_anywhere(bare, tmp_path):
    text = write(bare, tmp_path / "new", singularity=True).read_text()
    assert f"{tmp_path}/new/parts /build/parts" in text
    assert f"Bootstrap: docker\nFrom: debian@sha256:{'0' * 64}\n" in text


def test_a_folder_that_has_something_in_it_is_left_alone(bare, tmp_path):
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "mine").write_text("mine")
    with pytest.raises(BadInput, match="is not empty"):
        write(bare, tmp_path / "new")
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["mine"]


def test_a_place_that_takes_no_folder_is_told(bare, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match=r"^-o: .* cannot be written") as caught:
        write(bare, tmp_path / "file" / "new")
    assert "-o" in caught.value.fix


def test_the_folder_is_the_same_whenever_it_is_written(bare, tmp_path):
    sums = []
    for name in ("one", "two"):
        write(bare, tmp_path / name)
        files = sorted(p for p in (tmp_path / name).rglob("*") if p.is_file())
        sums.append(
            [(p.relative_to(tmp_path / name), hashlib.sha256(p.read_bytes()).digest()) for p in files]
        )
    assert sums[0] == sums[1]


@every_row("name", [".", "link"])
def test_an_empty_folder_is_filled_and_stays_the_same_one(bare, tmp_path, monkeypatch, name):
    here = tmp_path / "here"
    here.mkdir()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(here if name == "." else tmp_path)
    (tmp_path / "link").symlink_to(here)
    inode = here.stat().st_ino
    target = write(bare, Path(name), singularity=True)
    assert target.samefile(here / "Singularity.def")
    assert f"{here}/parts /build/parts" in target.read_text()
    assert here.stat().st_ino == inode
    assert (tmp_path / "link").is_symlink()
    assert not [path.name for path in here.iterdir() if path.name.startswith(".")]


def test_a_file_in_place_of_the_folder_is_refused(bare, tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(BadInput, match="file is a file"):
        write(bare, tmp_path / "file")
    assert (tmp_path / "file").read_text() == "mine"
