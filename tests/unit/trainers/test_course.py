"""Test the epochs of a training without computation: when the trainer writes files, and when it stops."""

import json
import math

import numpy as np
import pytest

from tests.unit.tables import every_row
from toolkit.trainers.strategies.single import Single
from toolkit.trainers.training import checkpoint
from toolkit.trainers.training.checkpoint import EpochPart
from toolkit.trainers.training.course import Course, totals
from toolkit.trainers.training.metrics import FILE, Metrics
from toolkit.trainers.training.rank_checkpoints import RankCheckpoints, TrainingStart
from toolkit.trainers.training.rounds import Score, Trained, paced_steps
from toolkit.trainers.training.watch import NextSteps
from toolkit.trainers.trouble import Stopped, Trouble

SETTINGS = {"trainer": "mnist", "seed": 1}


class Instant:
    """A fake training loop with two parts of eight samples per epoch, which takes almost no time."""

    learning_rate = 0.1
    waited = 0.25

    def __init__(self):
        self.parts = []

    def epoch(self, number, passes, part, pause):
        self.parts.append((number, part))
        if not part.images:
            assert pause(EpochPart(8, 4.0, 2, 0.0), 5) == 7
        return Trained(Score(0.5, 0.9), 0.0, self.waited)

    def evaluate(self, samples):
        return Score(0.25, 0.95)

    def collect(self):
        self.whole = [np.ones(3)]

    def state(self):
        return self.whole


class Wishes:
    """A fake of the class ``Watch``; each pair in ``seen`` says whether to stop, and whether to save."""

    def __init__(self, *seen):
        self._seen, self.saved_times = list(seen), 0

    def look(self, steps):
        stop, save = self._seen.pop(0) if self._seen else (False, False)
        return NextSteps(stop, save, 7)

    def saved(self):
        self.saved_times += 1


@pytest.fixture
def run(tmp_path):
    def go(wishes, epochs=2, start=None):
        loop, world = Instant(), Single()
        checkpoints = RankCheckpoints(tmp_path, world, count=3)
        start = start or checkpoints.find()
        with Metrics(tmp_path) as metrics:
            if start.name:
                metrics.resumed(start.records, epoch=start.epochs + 1)
            else:
                metrics.header(seed=1)
            try:
                Course(loop, 16, None, world, wishes, checkpoints, metrics, SETTINGS, 1).run(start, epochs)
            finally:
                go.records = metrics.records
        return loop

    return go


def kinds(folder):
    return [json.loads(line)["record"] for line in (folder / FILE).read_text().splitlines()]


def test_a_checkpoint_is_written_after_each_epoch_and_remembers_its_metrics(run, tmp_path):
    wishes = Wishes()
    run(wishes)
    assert kinds(tmp_path) == ["header", "epoch", "epoch"]
    folder = tmp_path / checkpoint.FOLDER
    assert checkpoint.names(folder) == ["000002-000000000000", "000001-000000000000"]
    progress, _ = checkpoint.newest(folder)
    assert list(progress.records) == run.records
    assert (progress.epochs, progress.passes, progress.settings, wishes.saved_times) == (2, 1, SETTINGS, 2)


def test_an_epoch_that_takes_no_time_has_a_speed_all_the_same(run):
    run(Wishes(), epochs=1)
    assert run.records[1]["seconds"] > 0
    assert totals(run.records)["images_per_second"] == 16 / 1e-4


def test_an_epoch_tells_how_long_it_waited_for_samples_where_that_is_known(run, monkeypatch):
    run(Wishes(), epochs=1)
    assert run.records[1]["input_seconds"] == 0.25
    monkeypatch.setattr(Instant, "waited", None)
    run(Wishes(), epochs=2)
    assert "input_seconds" not in run.records[-1]


def test_who_is_asked_to_stop_within_an_epoch_saves_how_far_it_is(run, tmp_path):
    with pytest.raises(Stopped, match="000000-000000000008, and the same command resumes from it"):
        run(Wishes((True, False)))
    progress, _ = checkpoint.newest(tmp_path / checkpoint.FOLDER)
    assert (progress.epochs, progress.part) == (0, EpochPart(8, 4.0, 2, 0.0))
    assert kinds(tmp_path) == ["header"]


def test_a_run_goes_on_there_and_no_epoch_comes_twice(run, tmp_path):
    with pytest.raises(Stopped):
        run(Wishes((False, False), (False, False), (True, False)))
    loop = run(Wishes())
    assert loop.parts == [(1, EpochPart(8, 4.0, 2, 0.0))]
    assert kinds(tmp_path) == ["header", "epoch", "resumed", "epoch"]
    assert [line["epoch"] for line in run.records if line["record"] == "epoch"] == [1, 2]


def test_who_is_asked_to_stop_after_the_last_epoch_is_done_instead(run):
    run(Wishes((False, False), (True, False)), epochs=1)
    with pytest.raises(Stopped):
        run(Wishes((False, False), (True, False)), epochs=3, start=TrainingStart(passes=1))


def test_in_a_long_epoch_checkpoints_are_written_and_the_training_goes_on(run, tmp_path):
    wishes = Wishes((False, True))
    run(wishes, epochs=1)
    assert wishes.saved_times == 2
    assert checkpoint.names(tmp_path / checkpoint.FOLDER)[1] == "000000-000000000008"


def test_where_the_newest_is_damaged_the_epochs_after_it_are_trained_again(run, tmp_path, capsys):
    run(Wishes(), epochs=3)
    folder = tmp_path / checkpoint.FOLDER
    (folder / checkpoint.names(folder)[0] / checkpoint.STATE).write_bytes(b"")
    loop = run(Wishes(), epochs=3)
    assert [number for number, _ in loop.parts] == [2]
    assert kinds(tmp_path) == ["header", "epoch", "epoch", "resumed", "epoch"]
    assert "not loaded" in capsys.readouterr().out


@every_row(
    ("steps", "seconds", "expected"),
    [(32, 0.032, 320), (1000, 2.0, 1000), (1000, 8.0, 250), (1, 60.0, 1), (5, 0.0, 50)],
)
def test_a_slice_is_to_take_two_seconds_and_is_approached_in_strides(steps, seconds, expected):
    assert paced_steps(steps, seconds) == expected


def test_a_test_loss_that_overflowed_ends_no_training_and_is_told(run, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(Instant, "evaluate", lambda self, samples: Score(math.inf, 0.1))
    run(Wishes(), epochs=1)
    assert "test accuracy 0.1000" in (line := capsys.readouterr().out.splitlines()[-1])
    assert line.endswith("images/s  the test loss is inf")
    assert run.records[1]["test_loss"] is None
    assert totals(run.records)["test_loss"] is None
    assert checkpoint.newest(tmp_path / checkpoint.FOLDER)[0].epochs == 1


def test_a_training_that_diverges_within_an_epoch_keeps_the_checkpoints_before(run, tmp_path, monkeypatch):
    run(Wishes(), epochs=1)
    folder = tmp_path / checkpoint.FOLDER
    before = checkpoint.names(folder)

    def epoch(self, number, passes, part, pause):
        pause(EpochPart(8, math.nan, 2, 0.0), 5)

    monkeypatch.setattr(Instant, "epoch", epoch)
    for wish in ((False, True), (True, False)):
        with pytest.raises(Trouble, match="diverged in epoch 2: the loss is infinite or NaN") as told:
            run(Wishes(wish), epochs=2)
        assert told.value.code == 1
        assert checkpoint.names(folder) == before
