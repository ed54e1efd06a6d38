"""Test that toolkit checks a folder's write permission by writing a file."""

import os
from pathlib import Path

import pytest

from tests.unit.tables import every_row
from toolkit.errors import BadInput, Missing
from toolkit.run.folders import check_file, folder_mode, in_cache, make_writable, would_take


def test_a_folder_is_made_and_left_empty(tmp_path):
    folder = tmp_path / "new" / "folder"
    assert make_writable(folder, "-o") == folder
    assert list(folder.iterdir()) == []


@every_row("below", ["", "folder", "several/folders"])
def test_a_place_that_takes_no_files_is_named_with_its_option(below):
    folder = Path("/proc") / below
    with pytest.raises(BadInput, match=f"^-o: {folder} cannot be written: ") as caught:
        make_writable(folder, "-o")
    assert "-o" in caught.value.fix


@every_row("tried", [make_writable, would_take])
def test_a_file_in_the_way_is_told(tmp_path, tried):
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(BadInput, match=f"{folder} cannot be written"):
            tried(folder, "-o")


def test_what_would_be_made_is_not_made_by_asking(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for folder in (tmp_path, tmp_path / "new", tmp_path / "new" / "folder", Path("new"), Path("a") / "b"):
        assert would_take(folder, "-o") == folder
    assert list(tmp_path.iterdir()) == []


@every_row("folder", ["/proc", "/proc/new", "/proc/several/folders", f"/tmp/{'x' * 300}"])
def test_what_could_not_be_made_is_told_by_asking(folder):
    with pytest.raises(BadInput, match=f"^-o: {folder} cannot be written: ") as caught:
        would_take(Path(folder), "-o")
    assert "-o" in caught.value.fix


def test_only_a_file_is_written_anew(tmp_path):
    """toolkit refuses devices and pipes, because a rename as root would replace them by a file."""
    (tmp_path / "old").write_text("")
    os.mkfifo(tmp_path / "pipe")
    for fine in ("old", "new", "absent/new"):
        check_file(tmp_path / fine, "-o", "image.sif")
    with pytest.raises(
        BadInput, match=f"^-o {tmp_path}: this path is a folder; name a file, such as .*/image.sif"
    ):
        check_file(tmp_path, "-o", "image.sif")
    for other in (tmp_path / "pipe", Path("/dev/null")):
        with pytest.raises(BadInput, match=f"^-o {other}: not a regular file"):
            check_file(other, "-o", "image.sif")


def test_a_folder_of_the_cache_is_made(tmp_path, monkeypatch):
    monkeypatch.setenv("TOOLKIT_CACHE_DIR", str(tmp_path / "cache"))
    assert in_cache("a", "b") == tmp_path / "cache" / "a" / "b"
    assert in_cache("a", "b").is_dir()


def test_a_cache_that_takes_no_files_is_named_with_the_variable_that_moves_it(monkeypatch):
    monkeypatch.setenv("TOOLKIT_CACHE_DIR", "/proc/cache")
    with pytest.raises(Missing, match=r"^the cache folder /proc/cache/uv cannot be written: ") as caught:
        in_cache("uv")
    assert caught.value.fix == "set TOOLKIT_CACHE_DIR to a folder that you can write to"


@every_row(("mode", "folder"), [(0o600, 0o700), (0o700, 0o700), (0o640, 0o777), (0o644, 0o777)])
def test_what_is_nobody_elses_lies_in_a_folder_that_is_nobody_elses(mode, folder):
    assert folder_mode(mode) == folder
