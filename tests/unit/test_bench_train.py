"""The benchmark of the trainers: what it makes of its figures, not the figures themselves."""

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.benchmarks.train.cases import ALLREDUCE, COMPARISONS, cases, in_turns
from tests.benchmarks.train.page import page
from tests.benchmarks.train.result import Figure, Result
from tests.benchmarks.train.run import shortened
from tests.unit.trainers.digits import write_digits
from toolkit.trainers.mnist import check, load

INSIDE = Path(__file__).parents[1] / "benchmarks" / "train" / "inside"
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


def test_close_races_take_turns_of_epochs_and_those_of_several_ranks_of_whole_programs():
    order = [tuple(case.name for case in started) for started in in_turns(cases(epochs=2, steps=1))]
    assert ("cnn, tutorial", "cnn") in order
    assert ("resnet50, Keras", "resnet50") in order
    assert [one for one in order if "two" in one[0]] == [
        ("resnet50, two alone",),
        ("resnet50, two ranks",),
    ] * 3
    assert order[-6:] == [("allreduce, Horovod's default",), ("allreduce",)] * 3
    assert order.count(("dense, tutorial",)) == 1
    assert {name for started in order for name in started} == {*NAMES}


def turns(folder, me, log):
    """Have three epochs as a program of the benchmark does."""
    program = (
        "import sys, time; from baton import Baton; baton = Baton()\n"
        "for epoch in range(3):\n"
        f"    open({str(log)!r}, 'a').write(f'{me}{{epoch}}<'); time.sleep(0.05)\n"
        f"    open({str(log)!r}, 'a').write(f'>'); baton.hand_on()\n"
    )
    env = {**os.environ, "BENCH_BATON": str(folder), "BENCH_ME": me}
    return subprocess.Popen([sys.executable, "-c", program], cwd=INSIDE, env=env)


def test_after_the_first_epoch_two_programs_are_never_at_work_at_once(tmp_path):
    log = tmp_path / "log"
    both = [turns(tmp_path, me, log) for me in "01"]
    assert [one.wait(30) for one in both] == [0, 0]
    assert log.read_text().endswith("01<>11<>02<>12<>")


def test_a_program_whose_other_has_ended_goes_on_alone(tmp_path):
    (tmp_path / "over-1").touch()
    assert turns(tmp_path, "0", tmp_path / "log").wait(30) == 0
    assert (tmp_path / "log").read_text() == "00<>01<>02<>"


def test_one_that_ran_more_often_counts_by_its_rounds():
    result = found(**{"cnn": [1.0, 10.0, 20.0, 3.0, 30.0, 300.0], "cnn, XLA": [5.0, 15.0]})
    xla = next(one for one in COMPARISONS if one.ours == "cnn, XLA")
    assert result.ratio(xla) == 0.5


def test_the_page_has_every_case_with_its_rounds_and_accuracy():
    text = page(found(dense=[30.0, 10.0, 20.0]))
    assert "| dense | 20.00 images/s | 30.00, 10.00, 20.00 | 0.9800 |" in text
    assert all(f"| {name} |" in text for name in NAMES)
    assert "$" not in text
    assert "other work" not in text


def test_many_turns_are_told_by_the_least_and_the_most():
    text = page(found(cnn=[30.0, 10.0, *[20.0] * 9]))
    assert "| cnn | 20.00 images/s | 10.00 to 30.00, 11 turns | 0.9800 |" in text


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
