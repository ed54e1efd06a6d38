"""What every framework's loop shares: slices of steps, their pace, and the sums of an epoch."""

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
"""How many seconds a job may take to notice a request to stop."""

_FIRST_SLICE = 32
"""Number of steps after which the duration of a step is known."""

Pause = Callable[[EpochPart, int], int]
"""Called between two slices with the progress of the epoch and this rank's next number of steps; returns the
number that all ranks make. The call may stop the training by an exception.
"""


@dataclass(frozen=True, slots=True)
class Score:
    """Mean loss of a sample and share of right answers, over all ranks."""

    loss: float
    accuracy: float


@dataclass(frozen=True, slots=True)
class Slice:
    """Some steps of one table with the ``rows`` of this rank's samples; ``last`` marks the last slice of an
    epoch.
    """

    portion: Any
    rows: "numpy.ndarray"
    last: bool


@dataclass(frozen=True, slots=True)
class Trained:
    """A trained epoch: its score, its seconds, and the seconds in which a rank waited for samples.

    ``waited`` is the mean of all ranks, and ``None`` if unknown.
    """

    score: Score
    seconds: float
    waited: float | None


class StepTable(Protocol):
    """One table of sample numbers, which is read in portions of steps."""

    def take(self, start: int, stop: int) -> Any:  # noqa: ANN401 - what the framework's steps take
        """Return the steps from ``start`` up to ``stop``."""


class RowTable:
    """A table of sample numbers, a row for each step, of samples in memory."""

    def __init__(self, table: "numpy.ndarray") -> None:
        self._table = table

    def take(self, start: int, stop: int) -> "numpy.ndarray":
        return self._table[start:stop]


class Rounds:
    """Trains epochs in slices of a few seconds; a framework adds the steps.

    ``batch`` is the number of samples of a device in one update.
    """

    def __init__(self, data: Data, world: "World", *, batch: int, seed: int) -> None:
        self._data, self._count, self._world, self._seed = data, len(data), world, seed
        self._batch = batch
        self._pace = _FIRST_SLICE

    def _open(self, table: "numpy.ndarray", turn: int) -> StepTable:
        """Start a table in an epoch that follows ``turn`` others."""
        raise NotImplementedError

    def _make_steps(
        self,
        portion: Any,  # noqa: ANN401 - what the framework's steps take
        steps: int,
        done: float,
        each: float,
        loss: float,
        right: int,
    ) -> tuple[float, int]:
        """Make steps, the first after ``done`` epochs and each ``each`` epochs long; return the new sums."""
        raise NotImplementedError

    def _seconds_waited(self) -> float | None:
        """Return for how many seconds steps have waited for their batches; ``None`` if unknown."""
        raise NotImplementedError

    def collect(self) -> None:
        """Copy what ranks hold in parts to rank 0; here every rank holds everything."""

    def epoch(self, number: int, passes: int, part: EpochPart, pause: Pause) -> Trained:
        """Train the rest of an epoch, counted from 0, and return the results of the whole epoch.

        Raises:
            Trouble: if the training diverged.
        """
        images = passes * self._count
        for one in self._slices(number, passes, part.images):
            before = part.seconds
            part = self._train_slice(one, number, part, images)
            if not one.last:
                # All ranks must make the same slices, so the sizes may only depend on values that they share.
                self._pace = pause(part, paced_steps(len(one.rows), part.seconds - before))
        loss, right, waited = self._world.total([part.loss, part.right, part.waited])
        divergence.refuse(self._world, loss, number)
        known = self._seconds_waited() is not None
        score = Score(loss / images, right / images)
        return Trained(score, part.seconds, waited / self._world.size if known else None)

    def _slices(self, number: int, passes: int, done: int) -> Iterator[Slice]:
        """Return slices of a few seconds each."""
        tables = deal(
            rank=self._world.rank,
            size=self._world.size,
            devices=self._world.devices,
            count=self._count,
            batch=self._batch,
            epoch=number,
            seed=self._seed,
            passes=passes,
            done=done,
        )
        for table in tables:
            portions, at = self._open(table, number), 0
            while at < len(table):
                steps = min(self._pace, len(table) - at)
                last = table is tables[-1] and at + steps == len(table)
                yield Slice(portions.take(at, at + steps), table[at : at + steps], last)
                at += steps

    def _train_slice(self, one: Slice, number: int, part: EpochPart, images: int) -> EpochPart:
        """Train a slice, and return the progress of an epoch of ``images`` samples."""
        before, begun = self.waited, time.monotonic()
        done, each = number + part.images / images, self._batch * self._world.width / images
        with reading(self._data, one.rows.flat):
            # The sums pass through the computation, so that they do not depend on the slices.
            loss, right = self._make_steps(one.portion, len(one.rows), done, each, part.loss, part.right)
        mark("first_batch")
        seconds = time.monotonic() - begun
        taken = images if one.last else part.images + one.rows.size * self._world.size
        return EpochPart(taken, loss, right, part.seconds + seconds, part.waited + self.waited - before)

    @property
    def waited(self) -> float:
        """Return for how many seconds the steps of this rank have waited for samples, as far as known."""
        return self._seconds_waited() or 0.0

    def _score_all(self, sums: Sequence[float]) -> Score:
        """Return the score of all ranks from this rank's sums of loss, right answers and samples."""
        loss, right, everyone = self._world.total(sums)
        return Score(loss / everyone, right / everyone)


def paced_steps(steps: int, seconds: float) -> int:
    """Return the number of steps that takes about two seconds, if ``steps`` took ``seconds``.

    The first slices are slower than later ones and too short to measure, so the number grows at most tenfold.
    """
    return max(1, min(10 * steps, round(steps * _SLICE_SECONDS / max(seconds, 1e-3))))
