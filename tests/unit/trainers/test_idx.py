import pytest

from tests.unit.tables import every_row
from tests.unit.trainers.digits import idx
from toolkit.trainers.data.idx import read, shape
from toolkit.trainers.trouble import Trouble


@pytest.fixture
def images(tmp_path):
    path = tmp_path / "train-images-idx3-ubyte"
    path.write_bytes(idx((2, 3, 4), bytes(range(24))))
    return path


def complaint(path, dimensions=3):
    with pytest.raises(Trouble) as told:
        shape(path, dimensions)
    assert told.value.code == 2
    assert "\n" not in told.value.message
    assert "toolkit data get" in told.value.message
    return told.value.message


def test_shape_and_content_are_those_of_the_header(images):
    assert shape(images, 3) == (2, 3, 4)
    assert read(images, 3)[1, 2].tolist() == [20, 21, 22, 23]


def test_a_file_that_is_not_there_is_named(tmp_path):
    assert f"{tmp_path}/nothing: no such file" in complaint(tmp_path / "nothing")


def test_a_folder_in_place_of_a_file_is_named(tmp_path):
    with pytest.raises(Trouble, match="cannot be read: Is a directory"):
        shape(tmp_path, 3)


@every_row("cut", [39, 17, 15])
def test_a_file_that_is_cut_short_tells_both_sizes(images, cut):
    images.write_bytes(images.read_bytes()[:cut])
    message = complaint(images)
    assert f"has {cut} bytes" in message
    assert "requires 40 bytes" in message or "an idx header alone has 16 bytes" in message


def test_a_file_that_is_too_long_is_wrong_too(images):
    images.write_bytes(images.read_bytes() + b"\0")
    assert "has 41 bytes, but its header requires 40 bytes" in complaint(images)


@every_row("content", [b"", b"\x1f\x8b\x08\x08 packed", b"\0\0\x08\x01\0\0\0\x02ab", b"<html>"])
def test_what_is_no_idx_file_of_that_many_dimensions_is_told_by_its_start(images, content):
    images.write_bytes(content)
    assert "not an idx file with a 3-dimensional array of bytes" in complaint(images)
