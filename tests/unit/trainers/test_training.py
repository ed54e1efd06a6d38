"""Test a training before and after its epochs: unreadable data, a full disk, different samples on ranks."""

from dataclasses import replace

import pytest

from tests.unit.tables import every_row
from toolkit.trainers.mnist import TRAINER
from toolkit.trainers.strategies.single import Single
from toolkit.trainers.training import train as training
from toolkit.trainers.training.metrics import write_whole
from toolkit.trainers.trouble import Trouble


class Model:
    def __init__(self, fault=None):
        self._fault = fault

    def save(self, path):
        path.write_text("part")
        if self._fault:
            raise self._fault


def test_a_model_is_saved_under_its_name_and_nothing_else_is_left(tmp_path):
    write_whole(tmp_path / "model.keras", Model().save)
    assert [path.name for path in tmp_path.iterdir()] == ["model.keras"]


def test_a_full_disk_while_saving_is_one_line_and_keeps_the_old_model(tmp_path):
    path = tmp_path / "model.keras"
    path.write_text("old")
    with pytest.raises(Trouble, match=r"model\.keras: cannot be written: No space left") as told:
        write_whole(path, Model(OSError(28, "No space left on device")).save)
    assert told.value.code == 1
    assert path.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["model.keras"]


def test_data_that_is_gone_after_the_check_is_one_line_and_status_1(tmp_path):
    def gone(folder):
        raise OSError(116, "Stale file handle", str(folder / "images"))

    trainer = replace(TRAINER, load=gone)
    with pytest.raises(Trouble, match=r"images: can no longer be read: Stale file handle") as told:
        training._load(trainer, tmp_path)
    assert told.value.code == 1


class Two(Single):
    rank, size = 1, 2

    def __init__(self, told):
        self._told = told

    def gather(self, value):
        return [None, value]

    def tell(self, value):
        return self._told


def test_ranks_that_find_the_same_samples_go_on():
    training._check_same(Two((640, 64)), 640, 64)


@every_row(
    ("counts", "said"),
    [
        ((1641, 64), "rank 1 has 1,641 samples, but rank 0 has 640: "),
        ((640, 65), "rank 1 has 65 test samples, but rank 0 has 64: "),
    ],
)
def test_a_rank_with_other_samples_is_told_before_any_waits_for_it(counts, said):
    with pytest.raises(Trouble, match=said) as told:
        training._check_same(Two((640, 64)), *counts)
    assert told.value.code == 2
    assert "differs from rank 0's data" in told.value.message
