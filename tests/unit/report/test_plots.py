import struct
import sys

import pytest

from tests.unit.report.trainings import BENCHMARK, COMPLETE, EPOCHS, HEADER, PARTIAL, lines
from toolkit.errors import Missing
from toolkit.report.plots import training_png
from toolkit.report.result import parse_metrics, summarise

UNKNOWN = {**EPOCHS[1], "loss": None, "test_loss": None}
GAPS = lines(HEADER, EPOCHS[0], UNKNOWN, {**EPOCHS[0], "epoch": 3})
LONG = lines(HEADER, *({**EPOCHS[0], "epoch": number} for number in range(1, 41)))


@pytest.mark.parametrize("metrics", [COMPLETE, PARTIAL, LONG, BENCHMARK, GAPS, lines(HEADER, UNKNOWN)])
def test_a_training_of_any_length_is_drawn(metrics):
    training = parse_metrics(metrics)
    png = training_png(training, summarise(training, None))
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", png[16:24])
    assert width > 1600
    assert height > 600


def test_equal_trainings_give_equal_files():
    training = parse_metrics(COMPLETE)
    result = summarise(training, None)
    assert training_png(training, result) == training_png(training, result)


def test_without_matplotlib_it_is_said_how_to_get_it(monkeypatch):
    # An installation without the extra `plot`, whatever the one that the tests run in has.
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    training = parse_metrics(COMPLETE)
    with pytest.raises(Missing, match=r"training.png is left out") as told:
        training_png(training, summarise(training, None))
    assert "toolkit[plot]" in told.value.fix
