"""Test the trainers' options with each strategy, except options that other tests cover."""

import json
from pathlib import Path

import pytest

from tests.services.training import TWO

PROGRAMS = Path(__file__).parent / "learning"
SETTINGS = {"TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONPATH": "/opt/toolkit/lib"}

EQUAL = ("mirrored", "horovod", "multiworker", "mpi-aggregate", "hybrid", "ps-sync")
"""Strategies that must give the same weights as one process."""

BUSY = 900.0


@pytest.fixture(scope="module")
def everywhere(inside, tmp_path_factory):
    binds = {PROGRAMS: "/tests:ro", tmp_path_factory.mktemp("everywhere"): "/out"}
    done = inside("sh", "/tests/everywhere.sh", binds=binds, env=SETTINGS, timeout=BUSY)
    told = [json.loads(line.removeprefix("RESULT ")) for line in done.lines if line.startswith("RESULT ")]
    found = {one["strategy"]: one for one in told}
    assert set(found) == {"single", "ps", *EQUAL}, done.lines[-40:]
    return found


@pytest.mark.parametrize("strategy", EQUAL)
@pytest.mark.parametrize(
    "name",
    ["plain", "nesterov", "corrected", "ahead", "adam", "lars", "lamb", "smoothed", "accumulated", "xla"],
)
def test_an_option_does_with_each_strategy_what_it_does_in_one_process(everywhere, strategy, name):
    found = everywhere[strategy]
    if (strategy, name) == ("ps-sync", "xla"):
        assert name not in found["apart"]
        return
    # Adam and LAMB divide by roots of values near 0, which enlarges rounding errors.
    assert found["apart"][name] < (2e-5 if name in ("adam", "lamb") else 2e-6)
    assert name == "plain" or found["from plain"][name] > 1e-4


@pytest.mark.parametrize("strategy", EQUAL)
@pytest.mark.parametrize("name", ["bfloat16", "float16"])
def test_layers_compute_in_16_bits_with_each_strategy(everywhere, strategy, name):
    found = everywhere[strategy]
    if (strategy, name) == ("ps-sync", "float16"):
        assert name not in found["apart"]
        return
    assert found["apart"][name] < 1e-2
    assert found["from plain"][name] > 1e-5


@pytest.mark.parametrize("strategy", ["mirrored", "horovod", "multiworker"])
def test_norms_over_the_batches_of_all_are_those_of_one_process(everywhere, strategy):
    assert everywhere[strategy]["apart"]["shared norms"] < 2e-5


@pytest.mark.parametrize("strategy", ["ps", "ps-sync", "mpi-aggregate", "hybrid"])
def test_what_a_strategy_refuses_is_not_done_in_silence(everywhere, strategy):
    assert "shared norms" not in everywhere[strategy]["apart"]


def test_workers_that_do_not_wait_learn_with_all_options_too(everywhere):
    found = everywhere["ps"]["losses"]
    assert {"nesterov", "corrected", "ahead", "adam", "lars", "lamb", "accumulated", "bfloat16"} <= set(found)
    for name, losses in found.items():
        assert losses[-1] < losses[0], name


@pytest.mark.parametrize("strategy", ["single", "ps", *EQUAL])
def test_a_batch_is_found_by_trial_with_each_strategy_and_is_the_same_on_all_ranks(everywhere, strategy):
    found = everywhere[strategy]
    assert found["batch"] in (16, 32, 64)
    assert found["together"] == found["batch"]


@pytest.fixture(scope="module")
def options(inside, tmp_path_factory):
    out, data = (tmp_path_factory.mktemp(name) for name in ("options", "pictures"))
    binds = {PROGRAMS: "/tests:ro", out: "/out", data: "/data"}
    done = inside("python", "/tests/options.py", binds=binds, env=SETTINGS)
    assert done.ok, done.lines[-30:]
    return json.loads(done.lines[-1]), done.lines


def test_another_seed_is_another_training(options):
    first, second, again = options[0]["losses of seeds 1, 2, 2"]
    assert second == again != first


def test_so_many_checkpoints_stay_and_fresh_begins_anew(options):
    found = options[0]
    assert found["kept"] == ["000003-000000000000", "000004-000000000000"]
    assert found["kept after 5"] == ["000005-000000000000"]
    assert found["anew"] == ["header", "epoch", "epoch", "result"]


def test_in_a_long_epoch_a_checkpoint_is_written_when_it_is_time(options):
    assert options[0]["often"] == ["000000-000000000032", "000001-000000000000"]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (
            "cut",
            "pictures: /data/cut/train/class-3/3.jpg: cannot be decoded: the image is incomplete or damaged",
        ),
        (
            "png",
            "pictures: /data/png/train/class-2/2.jpg: cannot be decoded: the image is incomplete or damaged",
        ),
        ("page", "pictures: /data/page/train/class-1/1.jpg is neither a JPEG nor a PNG image"),
        ("gone", "pictures: /data/gone/train/class-0/4.jpg: cannot be read: No such file or directory"),
        (
            "test",
            "pictures: /data/test/val/class-1/5.jpg: cannot be decoded: the image is incomplete or damaged",
        ),
        ("packed", "packed: /data/packed/train-00000-of-00001: the record at byte "),
        ("zero", "packed: /data/zero/train-00000-of-00001: the record at byte "),
        ("many", "packed: /data/many/train-00000-of-00001: the record at byte "),
    ],
)
def test_an_image_that_cannot_be_read_is_one_line_with_its_name_and_status_2(options, name, said):
    found, lines = options
    assert (found["whole"], found[name]) == (0, 2)
    assert sum(line.startswith(said) for line in lines) == 1, lines
    assert not any("Traceback" in line for line in lines)


def test_an_image_that_is_cut_short_ends_two_ranks_with_one_line(inside, tmp_path):
    for name in ("out", "data"):
        (tmp_path / name).mkdir()
    binds = {PROGRAMS: "/tests:ro", tmp_path / "out": "/out", tmp_path / "data": "/data"}
    done = inside(*TWO, "python", "/tests/options.py", "two-ranks", binds=binds, env=SETTINGS)
    assert done.status == 2, done.lines
    assert not done.timed_out
    told = [line for line in done.lines if line.startswith("pictures: /data/")]
    assert len(told) == 1, done.lines
    assert "3.jpg: cannot be decoded" in told[0]
    assert not any("Traceback" in line for line in done.lines)


def test_a_label_of_no_class_is_told_with_what_labels_may_be(options):
    told = [line for line in options[1] if ": its label is " in line]
    assert [line.partition(": its label is ")[2] for line in told] == [
        "0, but labels begin at 1; renumber the labels",
        "5, but the last of 4 classes has the label 4; set --classes to the number of classes",
    ]


def test_two_ranks_begin_with_the_same_weights_and_drop_what_each_draws(inside, tmp_path):
    binds = {PROGRAMS: "/tests:ro", tmp_path: "/out"}
    done = inside(*TWO, "python", "/tests/options.py", "masks", binds=binds, env=SETTINGS)
    assert done.ok, done.lines
    ours, theirs = ((tmp_path / f"masks-{rank}").read_text().splitlines() for rank in range(2))
    assert ours[0] == theirs[0], "the first weights"
    # In an evaluation, dropout keeps all numbers, so compare only the lines of training steps.
    ours, theirs = ({line for line in lines if " 0 " in line} for lines in (ours, theirs))
    assert len(ours) == len(theirs) == 4, "a mask a step"
    assert not ours & theirs


def test_the_metrics_tell_how_long_a_rank_waited_for_its_samples(options):
    found = options[0]
    assert 0.7 < found["slow waits"] <= 1
    assert found["quick waits"] < 0.3
    assert found["in memory"] == [0.0]


def test_models_and_sizes_of_images_are_those_that_were_asked_for(options):
    found = options[0]
    classic, tutorial = found["mnist-cnn"]
    assert classic == 1_199_882 != tutorial
    small, larger = found["cifar10"]
    assert small < larger
    assert [side for _, side in found["cifar10 resized"]] == [[64, 64], [96, 96]]
    # The image folders have 4 classes and synthetic images have 1000; each class adds 1024 weights and a
    # bias.
    (few, _), (many, _) = found["imagenet"], found["imagenet-synthetic"]
    assert many - few == 996 * 1025


def test_a_measurement_makes_the_steps_that_were_asked_for(options):
    assert options[0]["timed"] == [0, 1, [4, 4, 4]]
