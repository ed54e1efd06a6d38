"""Test the progress lines during a long epoch."""

from toolkit.trainers.training.checkpoint import EpochPart
from toolkit.trainers.training.progress import ProgressLine


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def test_a_line_comes_when_it_is_time_and_tells_of_the_steps_since_the_last_one():
    clock = Clock()
    progress = ProgressLine(60, epochs=90, images=1000, size=2, clock=clock)
    progress.begin(EpochPart())
    clock.now = 59
    assert progress.line(2, EpochPart(100, 200.0, 10, 59.0)) == ""
    clock.now = 60
    # Rank 0 knows only the loss of its half of the samples.
    assert progress.line(2, EpochPart(200, 150.0, 20, 50.0)) == (
        "epoch 3/90  20%  loss 1.5000  4 images/s  3 min left in this epoch"
    )
    clock.now = 119
    assert progress.line(2, EpochPart(300, 200.0, 30, 75.0)) == ""
    clock.now = 121
    assert progress.line(2, EpochPart(700, 275.0, 60, 100.0)).startswith(
        "epoch 3/90  70%  loss 0.5000  10 images/s"
    )


def test_an_epoch_that_goes_on_tells_of_what_was_done_since():
    clock = Clock()
    progress = ProgressLine(1, epochs=2, images=1000, size=1, clock=clock)
    progress.begin(EpochPart(500, 5000.0, 0, 1000.0))
    clock.now = 5
    assert (
        progress.line(0, EpochPart(600, 5100.0, 0, 1004.0))
        == "epoch 1/2  60%  loss 1.0000  25 images/s  16 s left in this epoch"
    )
