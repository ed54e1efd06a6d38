"""Test at which epoch a training resumes from a checkpoint, and which settings must equal the checkpoint's
settings.
"""

import math

import numpy as np
import pytest

from tests.unit.tables import every_row
from toolkit.trainers.strategies.single import Single
from toolkit.trainers.training import rank_checkpoints
from toolkit.trainers.training.checkpoint import EpochPart
from toolkit.trainers.training.rank_checkpoints import RankCheckpoints, TrainingStart
from toolkit.trainers.trouble import Trouble

SETTINGS = {"trainer": "mnist", "seed": 1, "batch_size": 32, "samples": 640, "learning_rate": 0.001}


class Second(Single):
    """Rank 1 of two, which receives the given values from rank 0."""

    rank, size = 1, 2

    def __init__(self, *told):
        self._told = list(told)

    def tell(self, value):
        return self._told.pop(0)


class Variables:
    def collect(self):
        self.whole = [np.arange(3)]

    def state(self):
        return self.whole


def test_without_checkpoints_each_rank_makes_a_pass_of_an_epoch(tmp_path):
    assert RankCheckpoints(tmp_path, Second(False), count=3).find() == TrainingStart(passes=2)


def test_what_one_saved_is_where_the_next_begins(tmp_path):
    checkpoints = RankCheckpoints(tmp_path, Single(), count=3)
    part = EpochPart(64, 1.5, 60, 0.25, 0.125)
    assert (
        checkpoints.save(Variables(), 2, 1, part, SETTINGS, [{"record": "header"}]) == "000001-000000000064"
    )
    start = checkpoints.find()
    assert (start.name, start.epochs, start.part, start.passes) == ("000001-000000000064", 1, part, 2)
    assert (start.records, start.settings) == ([{"record": "header"}], SETTINGS)
    assert start.arrays[0].tolist() == [0, 1, 2]


def test_the_sums_so_far_are_counted_by_rank_0_only(tmp_path):
    told = ("000001-000000000064", 1, EpochPart(64, 1.5, 60, 0.25, 0.125), 2, SETTINGS)
    start = RankCheckpoints(tmp_path, Second(True, told), count=3).find()
    assert start.part == EpochPart(64, 0.0, 0, 0.25)
    assert start.arrays is None


def test_other_ranks_write_nothing(tmp_path):
    checkpoints = RankCheckpoints(tmp_path, Second("name"), count=3)
    assert checkpoints.save(Variables(), 2, 1, EpochPart(), SETTINGS, []) == "name"
    checkpoints.clear()
    assert not list(tmp_path.iterdir())


def test_the_same_settings_go_on(tmp_path):
    checkpoints = RankCheckpoints(tmp_path, Single(), count=3)
    assert checkpoints.differs(TrainingStart(1, "name", settings=SETTINGS), SETTINGS) is None
    assert checkpoints.differs(TrainingStart(1), SETTINGS) is None


def test_a_checkpoint_that_is_older_than_an_option_goes_on(tmp_path):
    checkpoints = RankCheckpoints(tmp_path, Single(), count=3)
    start = TrainingStart(1, "name", settings=SETTINGS)
    assert checkpoints.differs(start, {**SETTINGS, "scaling": "linear"}) is None


@every_row(
    ("name", "theirs", "said"),
    [
        ("seed", 2, "has --seed 2, but this run has 1"),
        ("batch_size", 64, "has --batch-size 64, but this run has 32"),
        ("learning_rate", 0.1, "has --learning-rate 0.1, but this run has 0.001"),
        ("samples", 10, "has samples 10, but this run has 640"),
        ("trainer", "cifar", "has trainer cifar, but this run has mnist"),
    ],
)
def test_other_settings_are_refused_with_both_values_and_the_way_out(tmp_path, name, theirs, said):
    trouble = RankCheckpoints(tmp_path, Single(), count=3).differs(
        TrainingStart(1, "name", settings={**SETTINGS, name: theirs}), SETTINGS
    )
    assert said in trouble.message
    assert "--fresh" in trouble.message
    assert trouble.code == 2


def test_it_is_said_where_a_training_goes_on():
    at = TrainingStart(
        2,
        "000001-000000000064",
        1,
        EpochPart(64),
        records=[{"record": "header", "world_size": 4}, {"record": "resumed", "world_size": 1, "devices": 2}],
    )
    assert at.sentence(1000, 2) == (
        "resumes from checkpoint 000001-000000000064 with epoch 2, of which 64 of 2,000 samples are done"
    )
    assert at.sentence(1000, 3).endswith("are done; this run has 3 devices, the earlier run had 2")
    assert TrainingStart(1, "000001-000000000000", 1).sentence(1000, 1) == (
        "resumes from checkpoint 000001-000000000000 with epoch 2"
    )


def test_checkpoints_that_cannot_be_reached_are_one_line_and_status_1(tmp_path, monkeypatch):
    def stale(folder):
        raise OSError(116, "Stale file handle", str(folder))

    checkpoints = RankCheckpoints(tmp_path, Single(), count=3)
    monkeypatch.setattr(rank_checkpoints.checkpoint, "newest", stale)
    monkeypatch.setattr(rank_checkpoints.checkpoint, "remove_all", stale)
    with pytest.raises(Trouble, match="checkpoints: cannot be read: Stale file handle") as told:
        checkpoints.find()
    assert told.value.code == 1
    with pytest.raises(Trouble, match="checkpoints: cannot be removed: Stale file handle"):
        checkpoints.clear()


class Sums(Single):
    """One of two ranks, whose sums over both ranks are ``sums``; it records the arguments of ``agree``."""

    size = 2

    def __init__(self, rank, *sums):
        self.rank, self._sums, self.agreed = rank, list(sums), []

    def total(self, values):
        return self._sums

    def agree(self, trouble):
        self.agreed.append(trouble)
        raise trouble


@every_row("rank", [0, 1])
@every_row("loss", [math.nan, math.inf])
def test_all_ranks_end_where_the_loss_of_any_is_no_number(tmp_path, rank, loss):
    world = Sums(rank, loss, 60, 0.0)
    with pytest.raises(Trouble, match="the training diverged in epoch 3: the loss is infinite or NaN"):
        RankCheckpoints(tmp_path, world, count=3).save(
            Variables(), 1, 2, EpochPart(64, 1.0, 30), SETTINGS, []
        )
    assert len(world.agreed) == 1
    assert not list(tmp_path.iterdir())


@every_row(("images", "epoch"), [(64, 3), (0, 2)])
def test_weights_that_are_no_numbers_are_not_written_though_the_loss_has_not_seen_them(
    tmp_path, images, epoch
):
    lost = Variables()
    lost.state = lambda: [np.arange(3), np.array([1.0, math.nan], np.float32)]
    with pytest.raises(Trouble, match=f"diverged in epoch {epoch}: a weight is not a number") as told:
        RankCheckpoints(tmp_path, Single(), count=3).save(lost, 1, 2, EpochPart(images), SETTINGS, [])
    assert told.value.code == 1
    assert not list(tmp_path.iterdir())


def test_a_restarted_job_knows_the_checkpoints_that_it_began_itself(tmp_path):
    checkpoints = RankCheckpoints(tmp_path, Single(), count=3)
    checkpoints.save(Variables(), 1, 1, EpochPart(64, 1.5, 60, 0.25), SETTINGS, [])
    assert not checkpoints.are_of("/runs/a"), "Slurm restarted the job before it removed the old checkpoints"
    checkpoints.clear("/runs/a")
    assert not checkpoints.find().name
    assert checkpoints.are_of("/runs/a")
    assert not checkpoints.are_of("/runs/b")


def test_a_training_outside_a_job_owns_no_checkpoints(tmp_path):
    checkpoints = RankCheckpoints(tmp_path, Single(), count=3)
    checkpoints.clear()
    assert not checkpoints.are_of("")
    assert not list(tmp_path.iterdir())
