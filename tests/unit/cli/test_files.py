import pytest

from tests.unit.disks import fill
from toolkit.cli.files import write_whole
from toolkit.errors import BadInput, CheckFailed


def test_a_folder_that_is_not_there_is_the_callers_mistake(tmp_path):
    with pytest.raises(BadInput, match=r"absent/file: cannot be written: No such file or directory"):
        write_whole(tmp_path / "absent" / "file", b"x")


def test_a_folder_in_the_place_of_the_file_is_too(tmp_path):
    (tmp_path / "file").mkdir()
    with pytest.raises(BadInput, match="file: cannot be written: Is a directory"):
        write_whole(tmp_path / "file", b"x")


def test_a_full_disk_is_not(tmp_path, monkeypatch):
    file = tmp_path / "file"
    write_whole(file, b"old")
    fill(monkeypatch)
    with pytest.raises(CheckFailed, match="file: cannot be written: No space left") as told:
        write_whole(file, b"new content")
    assert "another disk" in told.value.fix
    assert file.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
