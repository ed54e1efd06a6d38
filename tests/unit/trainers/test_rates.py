"""Test the learning rate during a training, calculated with NumPy."""

import math

import numpy as np
import pytest

from tests.unit.tables import every_row
from toolkit.trainers.learning.rates import Rates, scale_rate


def rate(rates, done):
    return float(rates.rate(np.float64(done), np))


@every_row(("scaling", "expected"), [("linear", 1.6), ("sqrt", 0.4), ("none", 0.1)])
def test_the_rate_is_scaled_to_the_batches_of_an_update(scaling, expected):
    assert scale_rate(0.1, 16, scaling) == pytest.approx(expected)


def test_a_constant_rate_is_known_to_be_one_and_any_other_is_not():
    assert Rates(peak=0.2, start=0.1, epochs=9).constant
    assert not Rates(peak=0.1, start=0.1, epochs=9, warmup=5).constant, "more ranks may have begun"
    assert not Rates(peak=0.2, start=0.1, epochs=9, warmup=5).constant
    assert not Rates(peak=0.1, start=0.1, epochs=9, decay="cosine").constant


def test_warm_up_rises_evenly_from_the_rate_of_one_batch_to_that_of_all():
    rates = Rates(peak=3.2, start=0.1, epochs=90, warmup=5)
    assert [rate(rates, done) for done in (0, 2.5, 5, 89)] == pytest.approx([0.1, 1.65, 3.2, 3.2])


def test_steps_come_at_30_60_and_80_of_90_epochs_unless_it_is_said():
    rates = Rates(peak=0.1, start=0.1, epochs=90, decay="step")
    edges = [rate(rates, done) for done in (29.99, 30, 59.99, 60, 79.99, 80)]
    assert edges == pytest.approx([0.1, 0.01, 0.01, 0.001, 0.001, 0.0001])
    chosen = Rates(peak=0.1, start=0.1, epochs=90, decay="step", step_epochs=(1, 2), factor=0.5)
    assert [rate(chosen, done) for done in (0, 1, 2, 89)] == pytest.approx([0.1, 0.05, 0.025, 0.025])


def test_an_exponential_decay_multiplies_each_epoch_after_the_warm_up():
    rates = Rates(peak=1.0, start=0.0, epochs=9, warmup=1, decay="exponential", factor=0.5)
    assert [rate(rates, done) for done in (0.5, 1, 2, 3.5)] == pytest.approx([0.5, 1, 0.5, 0.5**2.5])
    assert rate(Rates(peak=1.0, start=1.0, epochs=9, decay="exponential"), 1) == pytest.approx(0.9)


@every_row("to", [0.0, 0.25])
def test_cosine_and_polynomial_take_the_rest_of_the_training_and_end_where_they_are_told_to(to):
    for decay, half in (("cosine", 0.5), ("polynomial", 0.25)):
        rates = Rates(peak=2.0, start=0.5, epochs=10, warmup=2, decay=decay, final=to)
        middle = 2.0 * (to + (1 - to) * half)
        assert [rate(rates, done) for done in (2, 6, 10, 12)] == pytest.approx([2.0, middle, 2 * to, 2 * to])
    rates = Rates(peak=1.0, start=1.0, epochs=8, decay="polynomial", power=1.0)
    assert rate(rates, 2) == pytest.approx(0.75)


def test_a_warm_up_that_is_longer_than_the_training_never_ends():
    rates = Rates(peak=1.0, start=0.0, epochs=2, warmup=4, decay="cosine")
    assert rate(rates, 2) == pytest.approx(0.5)
    assert math.isfinite(rate(rates, 2.001))


def test_many_points_at_once_are_those_one_by_one():
    rates = Rates(peak=1.0, start=0.1, epochs=9, warmup=3, decay="step", step_epochs=(4, 6))
    points = np.linspace(0, 9, 50)
    assert list(rates.rate(points, np)) == pytest.approx([rate(rates, one) for one in points])
