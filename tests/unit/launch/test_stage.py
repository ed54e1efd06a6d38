import pytest

from toolkit.errors import BadInput, CheckFailed
from toolkit.launch.stage import Parcel, remote_hashes, sha256, stage
from toolkit.model.progress import Silent
from toolkit.run.local import LocalRunner


def test_what_is_there_already_is_not_copied_again(tmp_path):
    source = tmp_path / "a"
    source.write_text("x")
    parcel = Parcel.of(source, str(tmp_path / "there" / "a"))
    assert stage(LocalRunner(), [parcel], Silent()) == 1
    assert stage(LocalRunner(), [parcel], Silent()) == 0


def test_a_file_with_other_bytes_is_replaced(tmp_path):
    (tmp_path / "a").write_text("new")
    (tmp_path / "b").write_text("old")
    stage(LocalRunner(), [Parcel.of(tmp_path / "a", str(tmp_path / "b"))], Silent())
    assert (tmp_path / "b").read_text() == "new"


def test_a_copy_that_arrives_damaged_is_removed_and_told(tmp_path):
    (tmp_path / "a").write_text("x")
    target = tmp_path / "b"

    class Lossy(LocalRunner):
        def upload(self, source, target, progress=None):
            super().write(target, b"")

    with pytest.raises(CheckFailed, match="arrived with other bytes"):
        stage(Lossy(), [Parcel.of(tmp_path / "a", str(target))], Silent())
    assert not target.exists()


def test_hashes_of_odd_names_and_absent_files(tmp_path):
    odd = tmp_path / "a \n\\ü"
    odd.write_text("x")
    assert remote_hashes(LocalRunner(), [str(odd), str(tmp_path / "absent")]) == {str(odd): sha256(odd)}
    assert remote_hashes(LocalRunner(), []) == {}


def test_an_unreadable_source_is_named(tmp_path):
    with pytest.raises(BadInput, match="absent: cannot be read"):
        sha256(tmp_path / "absent")
