"""Test which batch size a trainer chooses after it has tried several."""

import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.unit.tables import every_row
from toolkit.trainers.mnist import TRAINER
from toolkit.trainers.strategies.single import Single
from toolkit.trainers.trainer import Options
from toolkit.trainers.training import benchmark, trial
from toolkit.trainers.training.trial import BatchSpeed, fastest, largest, with_batch
from toolkit.trainers.words import count_or_auto

OPTIONS = Options(
    data=None,
    output=Path("out"),
    strategy="single",
    epochs=1,
    batch_size=0,
    learning=TRAINER.learning,
    seed=1,
)


def test_the_smallest_of_those_that_are_as_fast_as_any():
    tried = [
        BatchSpeed(16, 100.0),
        BatchSpeed(32, 190.0),
        BatchSpeed(64, 198.0),
        BatchSpeed(128, 199.0),
        BatchSpeed(256, 150.0),
    ]
    assert fastest(tried) == 64
    assert fastest(tried[:1]) == 16


def test_nothing_is_tried_where_the_batch_is_known():
    given = replace(OPTIONS, batch_size=8)
    assert with_batch(TRAINER, given, Single(), None) is given
    assert with_batch(TRAINER, OPTIONS, Single(), None, {"batch_size": 48}).batch_size == 48


@every_row(("text", "value"), [("auto", 0), ("7", 7)])
def test_a_batch_is_a_number_or_auto(text, value):
    assert count_or_auto(text) == value


def test_a_step_takes_no_more_samples_than_there_are_unless_they_are_repeated():
    assert largest(1024, 60000, 4, repeats_allowed=False) == (1024, "the limit is 1024")
    assert largest(1024, 128, 2, repeats_allowed=False) == (
        64,
        "a batch of 64 on each device uses all samples in one step",
    )
    assert largest(1024, 128, 200, repeats_allowed=False)[0] == 1
    assert largest(1024, 128, 200, repeats_allowed=True) == (1024, "the limit is 1024")


def test_a_benchmark_repeats_its_images(monkeypatch):
    asked = {}

    def stop(*_, **named):
        asked.update(named)
        raise RuntimeError

    keras = SimpleNamespace(utils=SimpleNamespace(set_random_seed=lambda seed: None))
    monkeypatch.setitem(sys.modules, "tensorflow", SimpleNamespace(keras=keras))
    monkeypatch.setattr(benchmark, "with_batch", stop)
    with pytest.raises(RuntimeError):
        benchmark.measure(
            benchmark.Protocol(), replace(TRAINER, load=lambda _: ([], [])), OPTIONS, Single(), 1
        )
    assert asked == {"repeats_allowed": True}


def test_nothing_larger_is_tried_where_a_step_takes_too_long(monkeypatch):
    config = SimpleNamespace(list_logical_devices=lambda kind: [])
    errors = SimpleNamespace(ResourceExhaustedError=MemoryError)
    monkeypatch.setitem(sys.modules, "tensorflow", SimpleNamespace(config=config, errors=errors))
    loop = SimpleNamespace(timed=lambda steps, batch: (steps * batch / 10, None))
    tried, why = trial._double(loop, Single(), 1024, "no more")
    assert ([one.batch for one in tried], why) == (
        [16, 32, 64, 128, 256],
        "a step with a batch of 256 took longer than 20 s",
    )
    assert trial._double(loop, Single(), 100, "no more")[1] == "no more"
