"""Test how the benchmark of the trainers evaluates figures."""

import importlib
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.benchmarks.train.cases import ALLREDUCE, COMPARISONS, cases, in_turns
from tests.benchmarks.train.page import page
from tests.benchmarks.train.peers import PEER_COMPARISONS, peer_cases
from tests.benchmarks.train.result import Figure, Result
from tests.benchmarks.train.run import deal_turns, shortened
from tests.unit.trainers.digits import write_digits
from toolkit.trainers.mnist import check, load

INSIDE = Path(__file__).parents[1] / "benchmarks" / "train" / "inside"
NAMES = [case.name for case in cases(epochs=2)]


def found(**rates):
    figures = {name: [Figure(100.0, 0.5), Figure(110.0, 0.5), Figure(120.0, 0.5)] for name in NAMES}
    for name, values in rates.items():
        figures[name] = [Figure(value, 0.5, 0.98) for value in values]
    return Result(image="toolkit/x:latest", started="2026-01-02T03:04:05", processors=2, figures=figures)


def test_each_comparison_is_of_cases_that_are_run():
    assert {name for one in COMPARISONS for name in (one.ours, one.theirs)} | {*ALLREDUCE} <= {*NAMES}


def test_a_ratio_is_the_median_of_those_of_each_round():
    # In the third round both programs are slow, which does not change their ratio.
    result = found(**{"dense": [20.0, 200.0, 440.0], "dense, tutorial": [10.0, 100.0, 200.0]})
    dense = next(one for one in COMPARISONS if (one.ours, one.theirs) == ("dense", "dense, tutorial"))
    assert result.ratio(dense) == 2.0
    assert json.loads(result.encoded())["ratios"][dense.title] == 2.0


def test_close_races_take_turns_while_they_run_and_those_of_messages_of_whole_programs():
    order = [tuple(case.name for case in started) for started in in_turns(cases(epochs=2))]
    assert ("cnn, tutorial", "cnn") in order
    assert ("resnet50, Keras", "resnet50") in order
    assert ("resnet50, two separate processes", "resnet50, two ranks") in order
    assert order[-6:] == [("allreduce, Horovod's default",), ("allreduce",)] * 3
    assert order.count(("dense, tutorial",)) == 1
    assert {name for started in order for name in started} == {*NAMES}


def turns(folder, me, log):
    """Start one of two programs that run three epochs each and take turns after the first epoch."""
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


STEPS = """
import time
number = 0
while True:
    begun, number = time.monotonic(), number + 1
    time.sleep(0.04)
    print(f"{number}/9  {time.monotonic() - begun:.3f} s  1,600.0 images/s (± 1)", flush=True)
"""


@pytest.fixture
def held_program(monkeypatch):
    """Return a function that starts a program in ``held.Held``, which stops and continues it with signals.

    Here ``held.send`` signals only the program. In a container, it signals all processes.
    """
    monkeypatch.syspath_prepend(str(INSIDE))
    held, begun = importlib.import_module("held"), []

    def begin(*words):
        begun.append(held.Held([sys.executable, "-c", *words]))
        monkeypatch.setattr(held, "send", lambda number: os.kill(begun[0].program.pid, number))
        return begun[0]

    yield begin
    for one in begun:
        one.program.kill()
        one.program.wait()
        one.reader.join()
        one.program.stdout.close()


def test_a_program_that_is_held_computes_in_its_turns_only(tmp_path, held_program):
    program = held_program(STEPS)
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(program.take_turns, tmp_path, "1")
        deal_turns(tmp_path, 1, [done], turns=2, seconds=0.4)
        done.result(10)
    first, second = program.turns
    assert second[0] - first[1] > 0.2
    assert len(program.rates()) == 2
    assert all(1500 < rate < 1700 for rate in program.rates())
    # A step that includes the program's pause is longer than a turn, and counts for no turn.
    between = [step for step in program.steps if first[1] < step[1] < second[0]]
    assert len(between) <= 1


def test_a_program_that_ends_ends_the_race_with_what_it_said(tmp_path, held_program):
    program = held_program("import sys; sys.exit('no such model')")
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(program.take_turns, tmp_path, "0")
        deal_turns(tmp_path, 1, [done], turns=2, seconds=60)
        with pytest.raises(SystemExit, match="no such model"):
            done.result(10)


def test_a_turn_in_which_no_step_was_done_is_told(held_program):
    program = held_program("")
    program.turns = [(5.0, 17.0)]
    program.steps = [(4.0, 6.0, 16.0), (16.0, 19.0, 16.0)]
    with pytest.raises(SystemExit, match="no step was done within a turn of 12 s"):
        program.rates()


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


def test_cases_of_pytorch_and_jax_run_in_pairs_in_one_image():
    pairs = list(in_turns(peer_cases(epochs=2)))
    assert [len(pair) for pair in pairs] == [2] * 4
    assert all(len({case.recipe for case in pair}) == 1 for pair in pairs)
    assert [{case.name for case in pair} for pair in pairs] == [
        {one.ours, one.theirs} for one in PEER_COMPARISONS
    ]


def test_a_measurement_of_one_framework_keeps_the_other_figures_of_the_page():
    before = page(found(dense=[30.0, 10.0, 20.0]))
    peers = {case.name: [Figure(7.0, 0.5)] for case in peer_cases(epochs=2)}
    both = page(Result(image="x", started="2026-02-03", processors=2, figures=peers), before)
    assert "| dense | 20.00 images/s |" in both
    assert "| resnet50, two ranks, JAX | 7.00 images/s | 7.00 | - |" in both
    assert "| ResNet50, two ranks, relative to two separate processes, PyTorch | 1.00 |" in both
    assert "2026-01-02" in both
    assert "2026-02-03" in both


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
