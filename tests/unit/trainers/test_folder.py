import pytest

from tests.unit.tables import every_row
from toolkit.trainers.data.folder import check, list_images
from toolkit.trainers.trouble import Trouble


@pytest.fixture
def data(tmp_path):
    for name in (
        "train/dog/2.JPEG",
        "train/dog/1.jpg",
        "train/cat/a.png",
        "train/cat/notes.txt",
        "val/dog/x.jpeg",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    return tmp_path


def test_images_are_listed_with_the_numbers_of_their_classes_in_train(data):
    check(data)
    (paths, classes), (tests, named) = list_images(data)
    assert [path.removeprefix(f"{data}/") for path in paths] == [
        "train/cat/a.png",
        "train/dog/1.jpg",
        "train/dog/2.JPEG",
    ]
    assert classes == [0, 1, 1]
    # dog has number 1, as in train, although test has no other class
    assert (len(tests), named) == (1, [1])


@every_row("name", ["validation", "test"])
def test_what_is_tested_with_may_have_another_name(data, name):
    (data / "val").rename(data / name)
    check(data)
    assert f"/{name}/dog/" in list_images(data)[1][0][0]


def complaint(data, call=check):
    with pytest.raises(Trouble) as told:
        call(data)
    assert "\n" not in told.value.message
    return told.value.message


def test_a_folder_without_images_to_train_on_is_told(tmp_path):
    told = f"{tmp_path}/train: no such folder; create it, with a subfolder for each class"
    assert told in complaint(tmp_path)
    (tmp_path / "train").mkdir()
    assert f"{tmp_path}/train: the folder contains no folders" in complaint(tmp_path)


def test_a_folder_without_images_to_test_with_is_told(data):
    (data / "val").rename(data / "more")
    assert "none of the folders val, validation, test exists" in complaint(data)


def test_a_class_that_is_not_trained_is_told(data):
    (data / "val" / "cow").mkdir()
    assert f"{data}/val/cow: {data}/train has no class of this name" in complaint(data)


def test_folders_without_images_are_told(data):
    (data / "val/dog/x.jpeg").unlink()
    assert f"{data}/val: the class folders contain no images" in complaint(data, list_images)


def test_what_macos_keeps_beside_an_image_is_none(data):
    before = list_images(data)
    for name in ("train/dog/._1.jpg", "val/dog/._x.jpeg"):
        (data / name).write_bytes(b"")
    assert list_images(data) == before


def test_a_file_beside_the_class_folders_is_no_class(data):
    (data / "train" / "README").write_text("")
    (data / "train" / ".cache").mkdir()
    assert set(list_images(data)[0][1]) == {0, 1}
