import random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.unit.study.studies import BSC, point, study
from tests.unit.tables import every_row
from tests.unit.thorough import count
from toolkit.study import fit, folder, model
from toolkit.study.statistics import curves


def curve_of(times, **more):
    """Return the scaling curve of runs; ``times`` has the seconds of each run by the number of ranks."""
    runs = [point(n, s, number=i) for n, all_of_it in times.items() for i, s in enumerate(all_of_it, 1)]
    (curve,) = curves(study([(n, 1) for n in times], **more), runs)
    return curve


def bsc():
    made = folder.load(BSC)
    (curve,) = curves(made, folder.load_points(BSC, made))
    return curve


def test_the_published_series_has_the_published_speed_up_and_the_model_gives_it_again():
    curve = bsc()
    assert [round(p.speedup.value, 2) for p in curve.points] == [1.0, 1.88, 3.75]
    made = fit.fit(curve)
    assert round(made.speedup(2).value, 1) == 1.9
    assert made.speedup(4).value == pytest.approx(3.75, rel=0.01)
    assert made.speedup(4).low < 3.75 < made.speedup(4).high
    assert not made.speedup(4).low < 3.3


def test_the_largest_published_size_is_predicted_from_the_smaller_ones():
    check = fit.check(bsc())
    assert check.ranks == 4
    assert check.holds
    assert check.prediction.value == pytest.approx(12, rel=0.05)


@every_row(("scaling", "weights"), [("weak", (100.0, 3.0, 8.0)), ("strong", (100.0, 3.0, 0.2))])
def test_what_times_were_made_of_is_found_again(scaling, weights):
    chance = random.Random(3)
    times = {
        n: [model.seconds(scaling, weights, n) * (1 + 0.002 * chance.gauss()) for _ in range(3)]
        for n in (1, 2, 4, 8, 16)
    }
    made = fit.fit(curve_of(times, scaling=scaling))
    assert made.weights == pytest.approx(weights, rel=0.2)
    assert made.serial.low <= 3 / 103 <= made.serial.high
    far = made.seconds(32)
    assert far.low < model.seconds(scaling, weights, 32) < far.high


def test_a_held_out_size_lies_in_the_range_as_often_as_it_is_said():
    held = 0
    for seed in range(40):
        chance = random.Random(seed)
        times = {
            n: [model.seconds("weak", (50.0, 2.0, 5.0), n) * (1 + 0.02 * chance.gauss()) for _ in range(3)]
            for n in (1, 2, 4, 8)
        }
        held += fit.check(curve_of(times)).holds
    assert held >= 36


def test_a_machine_that_gets_slower_with_ranks_does_not_pass_for_one_that_scales():
    made = fit.fit(curve_of({1: [1.0], 2: [1.6], 4: [2.9]}))
    assert made.speedup(8).value < 2
    curve = curve_of({1: [10.0, 10.1], 2: [5.0, 5.1], 4: [2.5, 2.5], 8: [9.0, 9.2]})
    assert not fit.check(curve).holds


def test_one_size_has_no_model_and_two_have_no_check():
    assert fit.fit(curve_of({1: [3.0]})) is None
    assert fit.check(curve_of({1: [3.0], 2: [2.0]})) is None


def test_nothing_is_foretold_from_two_sizes():
    assert fit.further(curve_of({1: [3.0], 2: [2.0]})) == ()
    assert fit.further(curve_of({1: [3.0], 2: [2.0], 4: [1.5]})) == (8, 16, 32)


def test_equal_figures_give_equal_reports():
    curve = bsc()
    assert fit.fit(curve) == fit.fit(curve)
    assert fit.fit(curve).seconds(8) == fit.fit(curve).seconds(8)


def test_the_bytes_of_the_gradient_give_a_bandwidth():
    weights = (10.0, 0.0, 4.0)
    curve = curve_of({n: [model.seconds("weak", weights, n)] for n in (1, 2, 4, 8)})
    # 250,000 parameters of 4 bytes, 100 steps per epoch with 10 samples each, 4 s in total.
    assert fit.bandwidth(curve, fit.fit(curve)) == pytest.approx(250_000 * 4 * 100 / 4.0, rel=0.1)
    assert fit.latency(curve, fit.fit(curve)) is None


@settings(deadline=None, max_examples=count(20, 60))
@given(st.lists(st.floats(1e-4, 1e5), min_size=2, max_size=5), st.sampled_from(["weak", "strong"]))
@example([1645.6002015081995, 0.0001, 12068.0], "weak")
def test_any_times_give_weights_that_are_not_negative_and_a_range_around_the_value(times, scaling):
    curve = curve_of({2**i: [seconds] for i, seconds in enumerate(times)}, scaling=scaling)
    made = fit.fit(curve)
    assert min(made.weights) >= 0
    told = made.seconds(64)
    assert 0 <= told.low <= told.value <= told.high


@settings(deadline=None, max_examples=count(20, 50))
@given(st.lists(st.floats(0.5, 50), min_size=4, max_size=6))
def test_the_best_choice_of_terms_is_as_good_as_any_other_weights(times):
    ranks = [2**i for i in range(len(times))]
    best, weights = model.solutions("weak", ranks, times, times)[0]
    chance = random.Random(1)
    for _ in range(50):
        other = [max(0.0, w + chance.gauss() * 0.1 * max(weights)) for w in weights]
        worse = sum(
            (model.seconds("weak", tuple(other), n) / t - 1) ** 2 for n, t in zip(ranks, times, strict=True)
        )
        assert worse >= best - 1e-6 * (1 + best)
