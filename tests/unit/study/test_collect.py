import pytest

from tests.unit.report.trainings import COMPLETE, END, EPOCHS, HEADER, PARTIAL, lines
from tests.unit.tables import every_row
from toolkit.errors import BadInput, CheckFailed
from toolkit.study import collect


def test_the_first_epoch_is_left_out_and_an_epoch_is_one_pass_over_the_data():
    found = collect.of_metrics(COMPLETE, 1, 2)
    # Two ranks train on 120,000 images in 2 s: two passes over the data, so one pass takes 1 s.
    assert found.seconds == (1.0,)
    assert found.rates == (60000.0,)
    assert [e.test_accuracy for e in found.epochs] == [0.97, 0.98]
    assert (found.samples, found.global_batch, found.parameters) == (60000, 64, 407050)
    assert len(collect.of_metrics(COMPLETE, 0, 2).seconds) == 2


@every_row(
    ("content", "said"),
    [
        (b"", "no metrics"),
        (PARTIAL, "the training did not finish"),
        (lines(HEADER, EPOCHS[0], END), "finished 1 epochs, but toolkit leaves out the first 1"),
        (lines(HEADER, *EPOCHS, {"record": "resumed"}), "resumed from a checkpoint"),
    ],
)
def test_metrics_without_a_figure_that_counts_are_told(content, said):
    with pytest.raises(CheckFailed, match=said):
        collect.of_metrics(content, 1, 2)


def world(size, strategy):
    return lines({**HEADER, "world_size": size, "strategy": strategy}, *EPOCHS, END)


@every_row(
    ("size", "strategy", "ranks"),
    [
        (2, "horovod", 64),
        (1, "horovod", 2),
        (1, "single", 4),
        (1, "mirrored", 4),
        (2, "hybrid", 4),
        (2, "multiworker", 4),
        (2, "mpi-aggregate", 4),
        (2, "horovod", 1),
    ],
)
def test_figures_of_another_number_of_ranks_are_refused(size, strategy, ranks):
    with pytest.raises(
        CheckFailed, match=rf"^the study requested {ranks} ranks?, but the training had {size}:"
    ):
        collect.of_metrics(world(size, strategy), 1, ranks)


@every_row(
    ("size", "strategy", "ranks"),
    [(1, "single", 1), (1, "mirrored", 1), (4, "hybrid", 4), (4, "mpi-aggregate", 4), (1, "ps", 4)],
)
def test_figures_of_all_ranks_count_and_those_of_servers_and_workers_are_of_one_coordinator(
    size, strategy, ranks
):
    assert collect.of_metrics(world(size, strategy), 1, ranks).seconds == (1.0,)


def test_figures_are_found_in_the_lines_of_rank_0():
    text = "0: img/sec: 100\n1: img/sec: 999\n0: img/sec: 1,250.5\nimg/sec: 1000\n"
    found = collect.of_output([text], r"img/sec: ([0-9.,]+)", 1)
    assert found.rates == (1250.5, 1000.0)
    assert found.seconds == (1000 / 1250.5, 1.0)


@every_row("count", ["1 rank", "2 ranks"])
def test_figures_of_a_run_that_slurm_started_again_are_left_out(count):
    began = f"job: 7, {count} on node9, mode srun-pmix\n"
    text = f"{began}0: node1 100\n0: node1 200\nsrun: error: node failed\n{began}0: node1 300\n0: node1 400\n"
    assert collect.of_output([text], r"node\d+ ?([0-9]*)", 1).rates == (400.0,)


def test_a_named_group_says_that_it_is_a_time():
    found = collect.of_output(["epoch 1: 45 s\n", "epoch 2: 44 s\n"], r"epoch (\d+): (?P<seconds>\d+) s", 0)
    assert (found.seconds, found.rates) == ((45.0, 44.0), ())


@every_row(
    ("text", "pattern", "said"),
    [
        ("nothing", r"(\d+) img", "finds nothing"),
        ("5 img", r"(\d+) img", "finds 1 values, but toolkit leaves out the first 1"),
        ("x img\ny img", r"(\w) img", "is not a number"),
        ("5 img\n0 img", r"(\d+) img", "but a time or a speed must be a positive number"),
    ],
)
def test_output_without_a_figure_that_counts_is_told(text, pattern, said):
    with pytest.raises(CheckFailed, match=said):
        collect.of_output([text], pattern, 1)


@every_row(("pattern", "said"), [("(", "--pattern"), ("img", "no part of the pattern is in parentheses")])
def test_a_pattern_that_is_none_is_refused(pattern, said):
    with pytest.raises(BadInput, match=said):
        collect.compile_pattern(pattern)


def test_what_a_rank_waited_for_samples_is_a_part_of_its_time_without_the_warm_up():
    waited = lines(HEADER, *({**epoch, "input_seconds": 1.0} for epoch in EPOCHS), END)
    assert collect.of_metrics(waited, 1, 2).waiting == 0.5
    assert collect.of_metrics(waited, 0, 2).waiting == 0.375
    assert collect.of_metrics(COMPLETE, 1, 2).waiting is None
