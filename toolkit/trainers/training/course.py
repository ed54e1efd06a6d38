"""Run the epochs of a training. After each epoch, write a checkpoint, a metrics line and a log line. In long
epochs, also write checkpoints and log lines during the epoch.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING

from toolkit.trainers.data.sources import Data
from toolkit.trainers.start_marks import marks
from toolkit.trainers.training.checkpoint import EpochPart
from toolkit.trainers.training.memory import resident
from toolkit.trainers.training.metrics import Metrics, Record, Value
from toolkit.trainers.training.progress import ProgressLine
from toolkit.trainers.training.rank_checkpoints import RankCheckpoints, Settings, TrainingStart
from toolkit.trainers.training.watch import Watch
from toolkit.trainers.trouble import Stopped

if TYPE_CHECKING:
    from toolkit.trainers.frameworks import TrainingLoop
    from toolkit.trainers.ranks.world import World

_SHORTEST = 1e-4


@dataclass(frozen=True, slots=True)
class EpochResult:
    """The results of an epoch. ``seconds`` is the training time without the evaluation, and ``images`` counts
    the images of all ranks.
    """

    epoch: int
    seconds: float
    images: int
    images_per_second: float
    loss: float
    accuracy: float
    test_loss: float
    test_accuracy: float
    input_seconds: float | None
    """The part of ``seconds`` that a rank waited for samples, as the mean over all ranks; ``None`` if
    unknown.
    """
    learning_rate: float
    """The learning rate of the epoch's last step."""
    memory_bytes: int
    """Resident host memory of rank 0, in bytes."""

    def line(self, epochs: int) -> str:
        unknown = f"  the test loss is {self.test_loss}" * (not math.isfinite(self.test_loss))
        return (
            f"epoch {self.epoch}/{epochs}  loss {self.loss:.4f}  accuracy {self.accuracy:.4f}  "
            f"test accuracy {self.test_accuracy:.4f}  {self.seconds:.2f} s  "
            f"{self.images_per_second:,.0f} images/s{unknown}"
        )


@dataclass(frozen=True, slots=True)
class Course:
    """The objects that all epochs of a run use.

    ``samples`` is the number of samples in one pass over the training data. ``passes`` is the number of
    passes in an epoch. ``test`` contains the samples for the evaluation after each epoch. ``progress`` makes
    the log lines during an epoch; it is ``None`` on all ranks except rank 0.
    """

    loop: "TrainingLoop"
    samples: int
    test: Data
    world: "World"
    watch: Watch
    checkpoints: RankCheckpoints
    metrics: Metrics
    settings: Settings
    passes: int
    progress: ProgressLine | None = None

    def run(self, start: TrainingStart, epochs: int) -> None:
        """Train until ``epochs`` epochs are complete, and write a checkpoint after each epoch.

        Raises:
            Stopped: on all ranks, if the user or Slurm requests a stop; rank 0 has then written a checkpoint.
        """
        part = start.part
        for number in range(start.epochs, epochs):
            done = self._epoch(number, part)
            part = EpochPart()
            self.metrics.epoch(**{name: one for name, one in asdict(done).items() if one is not None})
            if self.world.rank == 0:
                print(done.line(epochs), flush=True)
            name = self._save(number + 1, part)
            if number + 1 < epochs and self.watch.look(1).stop:
                raise Stopped(self._stop_message(name))

    def _epoch(self, number: int, part: EpochPart) -> EpochResult:
        if self.progress:
            self.progress.begin(part)
        trained = self.loop.epoch(number, self.passes, part, partial(self._pause, number))
        self.metrics.started(marks())
        held_back = self.loop.evaluate(self.test)
        # The metrics file contains seconds rounded to 1e-4. Avoid 0, because toolkit divides by this value.
        seconds = max(trained.seconds, _SHORTEST)
        images = self.passes * self.samples
        return EpochResult(
            epoch=number + 1,
            seconds=round(seconds, 4),
            images=images,
            images_per_second=round(images / seconds, 1),
            loss=trained.score.loss,
            accuracy=trained.score.accuracy,
            input_seconds=None if trained.waited is None else round(trained.waited, 4),
            test_loss=held_back.loss,
            test_accuracy=held_back.accuracy,
            learning_rate=self.loop.learning_rate,
            memory_bytes=resident(),
        )

    def _pause(self, number: int, part: EpochPart, steps: int) -> int:
        line = self.progress.line(number, part) if self.progress else ""
        if line:
            print(line, flush=True)
        self.metrics.started(marks())
        seen = self.watch.look(steps)
        if seen.stop or seen.save:
            name = self._save(number, part)
            if seen.stop:
                raise Stopped(self._stop_message(name))
        return seen.steps

    def _save(self, epochs: int, part: EpochPart) -> str:
        name = self.checkpoints.save(
            self.loop, self.passes, epochs, part, self.settings, self.metrics.records
        )
        self.watch.saved()
        return name

    def _stop_message(self, name: str) -> str:
        return (
            f"stopped on request; the checkpoint is {self.checkpoints.folder / name}, and the same command "
            "resumes from it"
        )


def totals(records: Sequence[Record]) -> dict[str, Value]:
    """Return fields of the metrics line ``result``: the totals of all epochs, and the test results of the
    last epoch. ``records`` contains the earlier lines of the metrics file.
    """
    done = [record for record in records if record["record"] == "epoch"]
    seconds = sum(float(str(record["seconds"])) for record in done)
    images = sum(int(str(record["images"])) for record in done)
    return {
        "epochs": len(done),
        "test_loss": done[-1]["test_loss"],
        "test_accuracy": done[-1]["test_accuracy"],
        "seconds": round(seconds, 4),
        "images": images,
        "images_per_second": round(images / seconds, 1),
    }
