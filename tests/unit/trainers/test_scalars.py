"""Test which values the trainer writes for TensorBoard, with a fake TensorFlow."""

import contextlib
import sys
from types import SimpleNamespace

import pytest

from toolkit.trainers.training import scalars as module
from toolkit.trainers.training.scalars import Scalars
from toolkit.trainers.trouble import Trouble


def test_an_image_without_tensorboard_is_told_in_one_line(tmp_path, monkeypatch):
    monkeypatch.setattr(module.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(Trouble, match="--tensorboard: the image has no TensorBoard"):
        Scalars(tmp_path)


def test_a_number_that_is_not_known_is_left_out(tmp_path, monkeypatch):
    drawn = {}
    writer = SimpleNamespace(as_default=lambda step: contextlib.nullcontext(), flush=lambda: None)
    summary = SimpleNamespace(create_file_writer=lambda folder: writer, scalar=drawn.__setitem__)
    errors = SimpleNamespace(OpError=OSError)
    monkeypatch.setattr(module.importlib.util, "find_spec", lambda name: name)
    monkeypatch.setitem(sys.modules, "tensorflow", SimpleNamespace(summary=summary, errors=errors))
    scalars = Scalars(tmp_path)
    scalars.begin()
    scalars.write({"record": "epoch", "epoch": 1, "loss": 0.5, "test_loss": None, "test_accuracy": 0.0})
    assert drawn == {"loss/train": 0.5, "accuracy/test": 0.0}
