"""The benchmark of the trainers: what it makes of its figures, not the figures themselves."""

import json

from tests.benchmarks.train.cases import ALLREDUCE, COMPARISONS, cases, in_turns
from tests.benchmarks.train.page import page
from tests.benchmarks.train.result import Figure, Result
from tests.benchmarks.train.run import shortened
from tests.unit.trainers.digits import write_digits
from toolkit.trainers.mnist import check, load

NAMES = [case.name for case in cases(epochs=2, steps=1)]


def found(**rates):
    figures = {name: [Figure(100.0, 0.5), Figure(110.0, 0.5), Figure(120.0, 0.5)] for name in NAMES}
    for name, values in rates.items():
        figures[name] = [Figure(value, 0.5, 0.98) for value in values]
    return Result(image="toolkit/x:latest", started="2026-01-02T03:04:05", processors=2, figures=figures)


def test_each_comparison_is_of_cases_that_are_run():
    assert {name for one in COMPARISONS for name in (one.ours, one.theirs)} | {*ALLREDUCE} <= {*NAMES}


def test_a_ratio_is_the_median_of_those_of_each_round():
    # One slow round of both says nothing of either.
    result = found(**{"dense": [20.0, 200.0, 440.0], "dense, tutorial": [10.0, 100.0, 200.0]})
    dense = next(one for one in COMPARISONS if (one.ours, one.theirs) == ("dense", "dense, tutorial"))
    assert result.ratio(dense) == 2.0
    assert json.loads(result.encoded())["ratios"][dense.title] == 2.0


def test_a_close_race_is_run_in_turns():
    order = [case.name for case in in_turns(cases(epochs=2, steps=1))]
    assert [name for name in order if name in ("cnn", "cnn, tutorial")] == ["cnn, tutorial", "cnn"] * 3
    assert order.count("dense, tutorial") == 1
    assert {*order} == {*NAMES}


def test_one_that_ran_more_often_counts_by_its_rounds():
    result = found(**{"cnn": [1.0, 10.0, 20.0, 3.0, 30.0, 300.0], "cnn, XLA": [5.0, 15.0]})
    xla = next(one for one in COMPARISONS if one.ours == "cnn, XLA")
    assert result.ratio(xla) == 0.5


def test_the_page_has_every_case_with_its_rounds_and_accuracy():
    text = page(found(dense=[30.0, 10.0, 20.0]))
    assert "| dense | 20.00 images/s | 30.00, 10.00, 20.00 | 0.9800, 0.9800, 0.9800 |" in text
    assert all(f"| {name} |" in text for name in NAMES)
    assert "$" not in text
    assert "other work" not in text


def test_a_page_of_a_busy_machine_says_so():
    busy = found()
    figures = {name: [Figure(1.0, 9.0)] for name in busy.figures}
    text = page(Result(image="x", started="2026-01-02", processors=2, figures=figures))
    assert "these figures say little" in text


def test_a_data_set_is_shortened_to_whole_samples(tmp_path):
    few = tmp_path / "few"
    few.mkdir()
    shortened(write_digits(tmp_path / "all", train=6, test=2), few, 4)
    check(few)
    train, test = load(few)
    whole, _ = load(tmp_path / "all")
    assert (len(train), len(test)) == (4, 2)
    assert (train.inputs == whole.inputs[:4]).all()
    assert (train.classes == whole.classes[:4]).all()
