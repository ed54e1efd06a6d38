"""Which of the batches that were tried is taken."""

from dataclasses import replace
from pathlib import Path

import pytest

from toolkit.trainers.mnist import TRAINER
from toolkit.trainers.strategies.single import Single
from toolkit.trainers.trainer import Options
from toolkit.trainers.training.trial import Tried, fastest, with_batch
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
    tried = [Tried(16, 100.0), Tried(32, 190.0), Tried(64, 198.0), Tried(128, 199.0), Tried(256, 150.0)]
    assert fastest(tried) == 64
    assert fastest(tried[:1]) == 16


def test_nothing_is_tried_where_the_batch_is_known():
    given = replace(OPTIONS, batch_size=8)
    assert with_batch(TRAINER, given, Single(), None) is given
    assert with_batch(TRAINER, OPTIONS, Single(), None, {"batch_size": 48}).batch_size == 48


@pytest.mark.parametrize(("text", "value"), [("auto", 0), ("7", 7)])
def test_a_batch_is_a_number_or_auto(text, value):
    assert count_or_auto(text) == value
