"""Test the options about learning, and which options must stay the same when a training resumes."""

import argparse
from dataclasses import replace
from types import SimpleNamespace

import pytest

from tests.unit.tables import every_row
from toolkit.trainers.learning.options import add_options
from toolkit.trainers.learning.policy import Learning
from toolkit.trainers.strategies.single import Single
from toolkit.trainers.training.rank_checkpoints import RankCheckpoints, TrainingStart

PLAIN = Learning(learning_rate=0.1)
ONE, FOUR, MANY = (SimpleNamespace(averaged=count) for count in (1, 4, 64))


def chosen(*words, learning=PLAIN):
    parser = argparse.ArgumentParser()
    add_options(learning, parser)
    return Learning.taken(vars(parser.parse_args(words)))


def test_without_options_it_is_what_the_trainer_says():
    other = Learning(0.5, scaling="sqrt", decay_at=(1.0, 2.0), nesterov=True, xla="auto", warmup_from=0.0)
    assert chosen() == PLAIN
    assert chosen(learning=other) == other


def test_every_field_is_an_option():
    words = """
        --learning-rate 0.2 --reference-batch 256 --scaling sqrt --warmup-epochs 5 --warmup-from 0
        --decay step --decay-at 30,60 --decay-factor 0.2 --decay-power 3 --decay-to 0.1
        --optimizer lars --momentum 0.8 --nesterov --no-momentum-correction --weight-decay 0.01 --trust 0.02
        --accumulate 2 --compression fp16 --label-smoothing 0.1 --mixed-precision bfloat16 --xla on
        --sync-batch-norm
    """
    found = chosen(*words.split())
    same = [name for name in Learning.__slots__ if getattr(found, name) == getattr(PLAIN, name)]
    assert same == []


@every_row(
    ("words", "said"),
    [
        (("--learning-rate", "0"), "0.0 is not a positive number"),
        (("--momentum", "1"), "1.0 is not a number from 0 to below 1"),
        (("--warmup-epochs", "-1"), "-1.0 is not a finite number of at least 0"),
        (("--decay-at", "60,30"), "each epoch must be later than the epoch before"),
        (("--accumulate", "0"), "0 is less than 1"),
    ],
)
def test_what_cannot_be_is_refused(words, said, capsys):
    with pytest.raises(SystemExit):
        chosen(*words)
    assert said in capsys.readouterr().err


def test_the_rate_follows_ranks_accumulated_batches_and_the_reference_batch():
    assert PLAIN.scaled(FOUR, 32) == pytest.approx(0.4)
    assert replace(PLAIN, accumulate=2).scaled(FOUR, 32) == pytest.approx(0.8)
    assert replace(PLAIN, reference_batch=256, scaling="sqrt").scaled(FOUR, 256) == pytest.approx(0.2)
    assert PLAIN.of_batch(32).of_batch(64).reference_batch == 32


def test_a_rate_that_is_kept_is_set_at_each_step_also_where_a_warm_up_has_nothing_to_rise_to():
    # Without the course, a training resumed from more ranks would keep the old learning rate.
    assert replace(PLAIN, warmup_epochs=5.0).course(ONE, 32, 90) is not None
    assert replace(PLAIN, decay="cosine").course(ONE, 32, 90) is not None
    assert PLAIN.course(ONE, 32, 90) is None


def test_a_warm_up_never_falls_unless_it_is_told_where_to_begin():
    goyal = replace(PLAIN, reference_batch=256, warmup_epochs=5.0)
    rates = [goyal.rates(world, 32, 90) for world in (ONE, FOUR, MANY)]
    assert [(one.start, one.peak) for one in rates] == [(0.0125, 0.0125), (0.05, 0.05), (0.1, 0.8)]
    assert replace(goyal, warmup_from=0.1).rates(ONE, 32, 90).start == 0.1


def test_a_training_goes_on_with_the_same_choices_only(tmp_path):
    checkpoints = RankCheckpoints(tmp_path, Single(), count=1)
    start = TrainingStart(passes=1, settings=PLAIN.settings())
    assert checkpoints.differs(start, PLAIN.settings()) is None
    for name, other, said in (
        ("warmup_epochs", 5.0, "--warmup-epochs 0.0, but this run has 5.0"),
        ("optimizer", "lamb", "--optimizer adam, but this run has lamb"),
        ("decay_at", (30.0, 60.0), "--decay-at , but this run has 30,60"),
        ("sync_batch_norm", True, "--sync-batch-norm False, but this run has True"),
    ):
        trouble = checkpoints.differs(start, replace(PLAIN, **{name: other}).settings())
        assert said in trouble.message


def test_only_a_course_with_an_end_depends_on_the_number_of_epochs():
    kinds = ("constant", "step", "exponential", "cosine", "polynomial")
    assert [replace(PLAIN, decay=one).ends() for one in kinds] == [False, True, False, True, True]
    assert not replace(PLAIN, decay="step", decay_at=(3.0,)).ends()
