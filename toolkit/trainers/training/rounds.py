"""The base class of the training loops. The base class divides an epoch into slices of several training
steps, and adds up the results of the slices.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from toolkit.trainers.data.faults import reading
from toolkit.trainers.data.shares import deal
from toolkit.trainers.data.sources import Data
from toolkit.trainers.start_marks import mark
from toolkit.trainers.training import divergence
from toolkit.trainers.training.checkpoint import EpochPart

if TYPE_CHECKING:
    import numpy

    from toolkit.trainers.ranks.world import World

_SLICE_SECONDS = 2.0
"""The intended duration of a slice (several training steps) in seconds. A request to stop takes effect after
at most one slice.
"""

_FIRST_SLICE = 32
"""The number of training steps in a run's first slice. toolkit measures the duration of a step in this slice,
to choose the number of steps in the next slice.
"""

Pause = Callable[[EpochPart, int], int]
"""A function that runs between two slices. The arguments of this function are the progress of the epoch and
the number of steps that this rank proposes for the next slice. The function returns the number of steps for
all ranks, or raises an exception to stop the training.
"""


@dataclass(frozen=True, slots=True)
class Score:
    """The mean loss per sample, and the share of correct predictions, over the samples of all ranks."""

    loss: float
    accuracy: float


@dataclass(frozen=True, slots=True)
class Slice:
    """Several consecutive training steps. ``portion`` is the input of these steps in the form that the
    framework needs. ``rows`` has a row of sample numbers for each step. ``last`` is true for the last
    slice of an epoch.
    """

    portion: Any
    rows: "numpy.ndarray"
    last: bool


@dataclass(frozen=True, slots=True)
class Trained:
    """The results of a trained epoch: the score, and times in seconds.

    ``seconds`` is the training time. ``waited`` is the time that training steps waited for samples, as the
    mean over all ranks, or ``None`` if unknown.
    """

    score: Score
    seconds: float
    waited: float | None


class StepTable(Protocol):
    """A table of sample numbers, from which a training loop takes the rows for several steps at a time."""

    def take(self, start: int, stop: int) -> Any:  # noqa: ANN401 - depends on the framework
        """Return the input that the framework needs for the steps ``start`` to ``stop`` - 1."""


class RowTable:
    """A table of sample numbers for samples in memory, with one row per step."""

    def __init__(self, table: "numpy.ndarray") -> None:
        self._table = table

    def take(self, start: int, stop: int) -> "numpy.ndarray":
        return self._table[start:stop]


class Rounds:
    """Trains epochs in slices of a few seconds. Each framework has a subclass, which makes the training
    steps.

    ``batch`` is the number of samples per device in one update. If ``SUMS_ALL`` is true, the sums of losses
    and correct predictions on rank 0 cover the samples of all ranks, and the sums on the other ranks are 0.
    """

    SUMS_ALL = False

    def __init__(self, data: Data, world: "World", *, batch: int, seed: int) -> None:
        self._data, self._count, self._world, self._seed = data, len(data), world, seed
        self._batch = batch
        self._pace = _FIRST_SLICE

    def _open(self, table: "numpy.ndarray", epoch: int) -> StepTable:
        """Start reading the samples whose numbers ``table`` contains. ``epoch`` is the number of the epoch,
        counted from 0.
        """
        raise NotImplementedError

    def _make_steps(
        self,
        portion: Any,  # noqa: ANN401 - depends on the framework
        steps: int,
        epochs: float,
        step_share: float,
        loss: float,
        right: int,
    ) -> tuple[float, int]:
        """Make ``steps`` training steps. Add the losses to ``loss`` and the number of correct predictions to
        ``right``, and return both sums.

        ``epochs`` is the number of epochs trained before the first step, with its fractional part.
        ``step_share`` is the fraction of an epoch that one step covers.
        """
        raise NotImplementedError

    def _seconds_waited(self) -> float | None:
        """Return the total time in seconds that steps waited for their batches, or ``None`` if unknown."""
        raise NotImplementedError

    def collect(self) -> None:
        """Copy the model's and optimizer's values to rank 0 if each rank stores only a part of them (shards).
        Subclasses whose ranks each store all values use this default, which does nothing.
        """

    def epoch(self, number: int, passes: int, part: EpochPart, pause: Pause) -> Trained:
        """Make the training steps that remain in epoch ``number``, counted from 0. Return the results of the
        whole epoch, including its earlier steps. ``part`` is the progress of the epoch so far. Call ``pause``
        after each slice except the last slice of the epoch.

        Raises:
            Trouble: on rank 0, if the training diverged.
        """
        images = passes * self._count
        for one in self._slices(number, passes, part.images):
            before = part.seconds
            part = self._train_slice(one, number, part, images)
            if not one.last:
                # pause() chooses the number of steps, because all ranks must make equally many steps.
                self._pace = pause(part, paced_steps(len(one.rows), part.seconds - before))
        loss, right, waited = self._world.total([part.loss, part.right, part.waited])
        divergence.refuse(self._world, loss, number)
        known = self._seconds_waited() is not None
        score = Score(loss / images, right / images)
        return Trained(score, part.seconds, waited / self._world.size if known else None)

    def _slices(self, number: int, passes: int, used_samples: int) -> Iterator[Slice]:
        """Yield the slices that remain in epoch ``number``. ``used_samples`` is the number of samples of this
        epoch that the ranks together have already used.
        """
        tables = deal(
            rank=self._world.rank,
            size=self._world.size,
            devices=self._world.devices,
            count=self._count,
            batch=self._batch,
            epoch=number,
            seed=self._seed,
            passes=passes,
            used_samples=used_samples,
        )
        for table in tables:
            portions, at = self._open(table, number), 0
            while at < len(table):
                steps = min(self._pace, len(table) - at)
                last = table is tables[-1] and at + steps == len(table)
                yield Slice(portions.take(at, at + steps), table[at : at + steps], last)
                at += steps

    def _train_slice(self, part_: Slice, number: int, part: EpochPart, images: int) -> EpochPart:
        """Make the training steps of a slice, and return the new progress of the epoch. ``images`` is the
        number of samples in the epoch.
        """
        before, begun = self.waited, time.monotonic()
        done, each = number + part.images / images, self._batch * self._world.width / images
        with reading(self._data, part_.rows.flat):
            # Add to the sums of earlier slices, so that rounding does not depend on the length of a slice.
            loss, right = self._make_steps(part_.portion, len(part_.rows), done, each, part.loss, part.right)
        mark("first_batch")
        seconds = time.monotonic() - begun
        taken = images if part_.last else part.images + part_.rows.size * self._world.size
        return EpochPart(taken, loss, right, part.seconds + seconds, part.waited + self.waited - before)

    @property
    def waited(self) -> float:
        """The total time in seconds that this rank's steps waited for samples, or 0 if unknown."""
        return self._seconds_waited() or 0.0

    def _score_all(self, sums: Sequence[float]) -> Score:
        """Return the score over all ranks. ``sums`` contains this rank's sum of losses, number of correct
        predictions, and number of samples.
        """
        loss, right, everyone = self._world.total(sums)
        return Score(loss / everyone, right / everyone)


def paced_steps(steps: int, seconds: float) -> int:
    """Return the number of steps that take about two seconds, if ``steps`` steps took ``seconds`` seconds.

    The result is at most ten times ``steps``, because the first slices are too short for a precise
    measurement.
    """
    return max(1, min(10 * steps, round(steps * _SLICE_SECONDS / max(seconds, 1e-3))))
