"""What surrounds the epochs: faults of the disk."""

from dataclasses import replace

import pytest

from toolkit.trainers.mnist import TRAINER
from toolkit.trainers.training import train as training
from toolkit.trainers.trouble import Trouble


class Model:
    """A model whose saving ends as it is told, after it has written a part."""

    def __init__(self, fault=None):
        self._fault = fault

    def save(self, path):
        path.write_text("part")
        if self._fault:
            raise self._fault


def test_a_model_is_saved_under_its_name_and_nothing_else_is_left(tmp_path):
    training.save(Model(), tmp_path / "model.keras")
    assert [path.name for path in tmp_path.iterdir()] == ["model.keras"]


def test_a_full_disk_while_saving_is_one_line_and_keeps_the_old_model(tmp_path):
    path = tmp_path / "model.keras"
    path.write_text("old")
    with pytest.raises(Trouble, match=r"model\.keras: cannot be written: No space left") as told:
        training.save(Model(OSError(28, "No space left on device")), path)
    assert told.value.code == 1
    assert path.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["model.keras"]


def test_data_that_is_gone_after_the_check_is_one_line_and_status_1(tmp_path):
    def gone(folder):
        raise OSError(116, "Stale file handle", str(folder / "images"))

    trainer = replace(TRAINER, load=gone)
    with pytest.raises(Trouble, match=r"images: cannot be read any more: Stale file handle") as told:
        training._load(trainer, tmp_path)
    assert told.value.code == 1
