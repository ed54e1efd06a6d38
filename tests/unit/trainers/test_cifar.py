import pytest

from tests.unit.tables import every_row
from toolkit.trainers.data.cifar import check, load
from toolkit.trainers.trouble import Trouble

NAMES = [*(f"data_batch_{number}.bin" for number in range(1, 6)), "test_batch.bin"]


def record(kind):
    """Return a CIFAR-10 record with different values in each row and colour plane; ``kind`` is its label."""
    red, green, blue = (bytes((start + at // 32) % 256 for at in range(1024)) for start in (0, 100, 200))
    return bytes((kind,)) + red + green + blue


@pytest.fixture
def data(tmp_path):
    for number, name in enumerate(NAMES):
        (tmp_path / name).write_bytes(record(number) + record(9 - number))
    return tmp_path


def test_records_become_images_with_the_colours_of_a_pixel_side_by_side(data):
    check(data)
    train, test = load(data)
    assert (train.inputs.shape, test.inputs.shape) == ((10, 32, 32, 3), (2, 32, 32, 3))
    assert train.inputs[0, 5, 7].tolist() == [5, 105, 205]
    assert train.inputs.flags["C_CONTIGUOUS"]
    assert train.inputs.dtype == train.classes.dtype == "uint8"


def test_classes_are_in_the_order_of_the_files(data):
    train, test = load(data)
    assert train.classes.tolist() == [0, 9, 1, 8, 2, 7, 3, 6, 4, 5]
    assert test.classes.tolist() == [5, 4]


@every_row("name", NAMES)
def test_a_file_that_is_not_there_is_named_with_what_to_do(data, name):
    (data / name).unlink()
    with pytest.raises(Trouble, match=f"{name}: no such file; fetch .* toolkit data get cifar10"):
        check(data)


@every_row("content", [b"", record(1)[:-1], record(1) + b"x"])
def test_a_file_that_is_no_whole_number_of_records_is_named(data, content):
    (data / "data_batch_3.bin").write_bytes(content)
    with pytest.raises(
        Trouble, match=r"data_batch_3.bin: the file has \d+ bytes, which is not a multiple of 3073"
    ):
        check(data)


def test_a_class_that_there_is_not_is_refused(data):
    (data / "test_batch.bin").write_bytes(record(1) + record(10))
    with pytest.raises(
        Trouble, match=r"test_batch.bin: the file contains the class 10, but the last class is 9"
    ):
        load(data)
