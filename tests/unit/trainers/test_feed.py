"""Test on which device the trainer gathers samples in memory, with a stand-in for TensorFlow."""

import contextlib
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from toolkit.trainers.data.feed import InMemory
from toolkit.trainers.data.sources import Samples


@pytest.fixture
def placed(monkeypatch):
    found, now = [], []

    @contextlib.contextmanager
    def device(name):
        now.append(name)
        yield
        now.pop()

    def note(what):
        return lambda one, *_: (found.append((what, now[-1] if now else "")), np.asarray(one))[1]

    stand_in = SimpleNamespace(
        constant=note("constant"),
        gather=note("gather"),
        device=device,
        int32="int32",
        TensorSpec=lambda shape, kind: kind,
    )
    monkeypatch.setitem(sys.modules, "tensorflow", stand_in)
    return found


def test_samples_stay_with_the_host_where_bytes_can_be_gathered(placed):
    feed = InMemory(Samples(np.zeros((4, 2), np.uint8), np.zeros(4, int)))
    feed.batch(np.zeros((1, 2), int), 0)
    assert placed == [("constant", "/CPU:0")] * 2 + [("gather", "/CPU:0")] * 2
