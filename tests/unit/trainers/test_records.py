"""Test that trainers index TFRecord files and choose the right shards."""

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.tables import every_row
from tests.unit.trainers.tfrecords import example, record, write_shards
from toolkit.trainers.data import recordindex
from toolkit.trainers.data.recordindex import index_records
from toolkit.trainers.data.records import TESTS, TRAIN, Records, check, shards
from toolkit.trainers.trouble import Trouble

IMAGES = [(bytes([number]) * (number * 37 % 200), number + 1) for number in range(23)]


@pytest.fixture
def data(tmp_path):
    write_shards(tmp_path, "train", IMAGES, 4)
    write_shards(tmp_path, "validation", IMAGES[:3], 2)
    return tmp_path


def content(index):
    return [index.paths[shard].read_bytes()[at : at + length] for shard, at, length in index.places]


def test_every_record_of_every_shard_is_in_the_index_once(data):
    found = content(index_records(shards(data, TRAIN)))
    assert sorted(found) == sorted(example(*one) for one in IMAGES)
    assert found[:6] == [example(*one) for one in IMAGES[::4]]


def test_a_record_is_read_by_its_number(data):
    index = index_records(shards(data, TRAIN))
    records = Records(index, side=8)
    assert len(records) == 23
    assert [records.read(number) for number in range(23)] == content(index)


def test_a_label_that_is_of_no_class_is_told_with_those_that_are(data):
    index = index_records(shards(data, TRAIN))
    records = Records(index, side=8, classes=10)
    assert [records.mislabelled(label) for label in (1, 10)] == ["", ""]
    assert records.mislabelled(0) == "its label is 0, but labels begin at 1; renumber the labels"
    assert records.mislabelled(11) == (
        "its label is 11, but the last of 10 classes has the label 10; set --classes to the number of classes"
    )
    first = Records(index, side=8, first_label=0, classes=10)
    assert [bool(first.mislabelled(label)) for label in (-1, 0, 9, 10)] == [True, False, False, True]
    assert not Records(index, side=8).mislabelled(1000)


def test_the_index_is_kept_and_read_no_more(data, monkeypatch):
    first = index_records(shards(data, TRAIN))
    monkeypatch.setattr(recordindex, "_lengths", None)
    assert (index_records(shards(data, TRAIN)).places == first.places).all()


def test_a_file_that_has_changed_is_read_again(data):
    index_records(shards(data, TRAIN))
    path = data / "train-00002-of-00004"
    path.write_bytes(path.read_bytes() + record(b"more"))
    assert len(index_records(shards(data, TRAIN))) == 24


@every_row("damage", [b"", b"nothing", b"PK\x03\x04"])
def test_a_damaged_index_is_made_anew(data, damage):
    index_records(shards(data, TRAIN))
    (kept,) = data.glob(".records-*")
    kept.write_bytes(damage)
    assert len(index_records(shards(data, TRAIN))) == 23
    assert kept.stat().st_size > 100


def test_where_nothing_can_be_written_it_is_made_each_time(data, monkeypatch):
    monkeypatch.setattr(recordindex, "_keep", lambda *_: None)
    assert len(index_records(shards(data, TRAIN))) == 23
    assert not list(data.glob(".records-*"))


def test_a_folder_that_takes_no_files_is_no_trouble(data, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("numpy.savez", full)
    assert len(index_records(shards(data, TRAIN))) == 23
    assert not list(data.glob(".records-*"))


WHOLE = b"".join(record(example(*one)) for one in IMAGES[:3])
ENDS = [len(b"".join(record(example(*one)) for one in IMAGES[:count])) for count in (1, 2, 3)]


@settings(deadline=None)
@given(st.integers(0, len(WHOLE) - 1))
def test_a_file_that_is_cut_short_is_told_unless_it_ends_with_a_record(cut):
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "train-00000-of-00001"
        path.write_bytes(WHOLE[:cut])
        if cut in ENDS:
            assert len(index_records([path])) == ENDS.index(cut) + 1
            return
        with pytest.raises(Trouble, match="is cut off"):
            index_records([path])


@every_row("head", [b"<html>log in first</html>", struct.pack("<Q", 1 << 63) + bytes(30)])
def test_what_is_no_file_of_records_is_told_before_anything_is_loaded(data, head):
    (data / "validation-00001-of-00002").write_bytes(head)
    with pytest.raises(
        Trouble, match="validation-00001-of-00002: the file is cut off, or is not a TFRecord file"
    ):
        check(data)


def test_a_missing_shard_is_told(data):
    (data / "train-00002-of-00004").unlink()
    with pytest.raises(Trouble, match=r"shard 2 is missing; the name train-00000-of-00004 says .* 0 to 3$"):
        check(data)


def test_shards_of_two_packings_are_told(data):
    (data / "train-00000-of-00003").write_bytes(WHOLE)
    with pytest.raises(Trouble, match="the names of other train files have another number"):
        check(data)


def test_a_folder_without_records_is_told(tmp_path):
    with pytest.raises(Trouble, match="contains no TFRecord files with names such as train-00000-of-"):
        check(tmp_path)


def test_other_names_and_endings_are_known(tmp_path):
    for path in write_shards(tmp_path, "val", IMAGES, 2):
        path.rename(path.with_name(f"{path.name}.tfrecord"))
    assert [path.name for path in shards(tmp_path, TESTS)] == [
        "val-00000-of-00002.tfrecord",
        "val-00001-of-00002.tfrecord",
    ]


def test_more_shards_than_a_process_may_open_are_opened(tmp_path):
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    paths = write_shards(tmp_path, "train", IMAGES * 10, 200)
    resource.setrlimit(resource.RLIMIT_NOFILE, (150, hard))
    try:
        records = Records(index_records(paths), side=8)
        assert len(records.read(229)) > 0
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
