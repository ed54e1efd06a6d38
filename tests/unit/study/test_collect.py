import pytest

from tests.unit.report.trainings import COMPLETE, EPOCHS, HEADER, PARTIAL, lines
from toolkit.errors import BadInput, CheckFailed
from toolkit.study import collect


def test_the_first_epoch_is_left_out_and_an_epoch_is_one_pass_over_the_data():
    found = collect.of_metrics(COMPLETE, 1)
    # Two ranks train on 120,000 images in the 2 seconds of the second epoch: two passes.
    assert found.seconds == (1.0,)
    assert found.rates == (60000.0,)
    assert [e.test_accuracy for e in found.epochs] == [0.97, 0.98]
    assert (found.samples, found.global_batch, found.parameters) == (60000, 64, 407050)
    assert len(collect.of_metrics(COMPLETE, 0).seconds) == 2


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "no metrics"),
        (PARTIAL, "finished 1 epochs, and the first 1 are left out"),
        (lines(HEADER, *EPOCHS, {"record": "resumed"}), "went on from a checkpoint"),
    ],
)
def test_metrics_without_a_figure_that_counts_are_told(content, said):
    with pytest.raises(CheckFailed, match=said):
        collect.of_metrics(content, 1)


def test_figures_are_found_in_the_lines_of_rank_0():
    text = "0: img/sec: 100\n1: img/sec: 999\n0: img/sec: 1,250.5\nimg/sec: 1000\n"
    found = collect.of_output(text, r"img/sec: ([0-9.,]+)", 1)
    assert found.rates == (1250.5, 1000.0)
    assert found.seconds == (1000 / 1250.5, 1.0)


def test_a_named_group_says_that_it_is_a_time():
    found = collect.of_output("epoch 1: 45 s\nepoch 2: 44 s\n", r"epoch (\d+): (?P<seconds>\d+) s", 0)
    assert (found.seconds, found.rates) == ((45.0, 44.0), ())


@pytest.mark.parametrize(
    ("text", "pattern", "said"),
    [
        ("nothing", r"(\d+) img", "finds nothing"),
        ("5 img", r"(\d+) img", "finds 1 figures, and 1 are left out"),
        ("x img\ny img", r"(\w) img", "is no number"),
        ("5 img\n0 img", r"(\d+) img", "neither a time nor a speed"),
    ],
)
def test_output_without_a_figure_that_counts_is_told(text, pattern, said):
    with pytest.raises(CheckFailed, match=said):
        collect.of_output(text, pattern, 1)


@pytest.mark.parametrize(
    ("pattern", "said"), [("(", "--pattern"), ("img", "put the figure into parentheses")]
)
def test_a_pattern_that_is_none_is_refused(pattern, said):
    with pytest.raises(BadInput, match=said):
        collect.compiled(pattern)


def test_what_a_rank_waited_for_samples_is_a_part_of_its_time_without_the_warm_up():
    waited = [{**epoch, "input_seconds": 1.0} for epoch in EPOCHS]
    assert collect.of_metrics(lines(HEADER, *waited), 1).waiting == 0.5
    assert collect.of_metrics(lines(HEADER, *waited), 0).waiting == 0.375
    assert collect.of_metrics(COMPLETE, 1).waiting is None
