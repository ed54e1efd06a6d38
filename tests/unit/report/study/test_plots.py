import struct
import sys
import time

import pytest

from tests.unit.report.trainings import BENCHMARK, COMPLETE, EPOCHS, HEADER, PARTIAL, lines
from tests.unit.tables import every_row
from tests.unit.thorough import count
from toolkit import DISTRIBUTION
from toolkit.errors import Missing
from toolkit.report.study.plots import training_png
from toolkit.report.study.training import epochs_table
from toolkit.study.result import parse_metrics, summarise

UNKNOWN = {**EPOCHS[1], "loss": None, "test_loss": None}
GAPS = lines(HEADER, EPOCHS[0], UNKNOWN, {**EPOCHS[0], "epoch": 3})
LONG = lines(HEADER, *({**EPOCHS[0], "epoch": number} for number in range(1, 41)))


@every_row("metrics", [COMPLETE, PARTIAL, LONG, BENCHMARK, GAPS, lines(HEADER, UNKNOWN)])
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


@every_row("trainer, strategy", [(r"$\frac$", "$"), ("a$b^{c$", "x" * 255)])
def test_a_name_is_no_formula(trainer, strategy):
    training = parse_metrics(lines({**HEADER, "trainer": trainer, "strategy": strategy}, EPOCHS[0]))
    assert training_png(training, summarise(training, None)).startswith(b"\x89PNG")


def test_the_largest_numbers_that_metrics_may_hold_are_drawn():
    extreme = {**EPOCHS[0], "epoch": 2**53, "images": 2**53, "images_per_second": 1e40, "loss": 1e40}
    training = parse_metrics(lines(HEADER, EPOCHS[0], extreme))
    assert training_png(training, summarise(training, None)).startswith(b"\x89PNG")


def test_of_a_very_long_training_some_epochs_are_drawn_within_seconds():
    many = count(40_000, 200_000)
    metrics = lines({**HEADER, "epochs": many}, *({**EPOCHS[0], "epoch": n + 1} for n in range(many)))
    began = time.process_time()
    training = parse_metrics(metrics)
    assert training_png(training, summarise(training, None)).startswith(b"\x89PNG")
    assert time.process_time() - began < 10
    shown = epochs_table(training).splitlines()
    assert len(shown) == 204
    assert shown[2].split()[0] == "1"
    assert shown[-2].split()[0] == str(many)
    assert shown[-1] == f"201 of {many:,} epochs are shown; metrics.jsonl contains all"


def test_without_matplotlib_it_is_said_how_to_get_it(monkeypatch):
    # Simulates an installation without the extra `plot`, even if the test environment has matplotlib.
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    training = parse_metrics(COMPLETE)
    with pytest.raises(Missing, match=r"training.png is left out") as told:
        training_png(training, summarise(training, None))
    assert f"pip install '{DISTRIBUTION}[plot]'" in told.value.fix
