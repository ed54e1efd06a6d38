"""The checkpoints of a training of many ranks: rank 0 reads and writes, the others are told."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.trainers.ranks.world import World
from toolkit.trainers.training import checkpoint, divergence
from toolkit.trainers.training.checkpoint import EpochPart, TrainingProgress
from toolkit.trainers.training.metrics import Record
from toolkit.trainers.trouble import Trouble

if TYPE_CHECKING:
    import numpy

    from toolkit.trainers.training.loop import Loop

Settings = Mapping[str, str | int | float]
_NOTHING = EpochPart()


@dataclass(frozen=True, slots=True)
class Start:
    """Where a training begins: anew, or at the checkpoint of that ``name``.

    ``passes`` is how often an epoch goes through the data. It is the number of ranks that began the
    training, and stays what it was where another number goes on. Only rank 0 has ``records`` and ``arrays``.
    """

    passes: int
    name: str = ""
    epochs: int = 0
    part: EpochPart = _NOTHING
    settings: Settings | None = None
    records: Sequence[Record] = ()
    arrays: "Sequence[numpy.ndarray] | None" = None

    def sentence(self, count: int, size: int) -> str:
        """Say where it goes on, of ``count`` samples and with ``size`` ranks."""
        images = self.passes * count
        done = f", of which {self.part.images:,} of {images:,} samples are done" * bool(self.part.images)
        ranks = f"{size} ranks share" if size > 1 else "1 rank shares"
        began = self._began(size)
        shared = f"; {ranks} out the rest, {began} began" * (size != began)
        return f"goes on from checkpoint {self.name} with epoch {self.epochs + 1}{done}{shared}"

    def _began(self, size: int) -> int:
        """Return with how many devices of all ranks the training went on last; ``size`` if nobody says."""
        told = [record for record in self.records if "world_size" in record]
        return int(str(told[-1]["world_size"])) * int(str(told[-1].get("devices", 1))) if told else size


class Keeper:
    """Writes and finds the checkpoints of one training; every rank has one and calls the same methods."""

    def __init__(self, output: Path, world: World, *, keep: int) -> None:
        self.folder = output / checkpoint.FOLDER
        self._world, self._keep = world, keep
        self._first = world.rank == 0

    def find(self) -> Start:
        """Return where to begin: at the newest checkpoint that is whole, if there is one."""
        with self._at("read"):
            found = checkpoint.newest(self.folder) if self._first else None
        if not self._world.tell(found is not None):
            return Start(passes=self._world.size)
        told = found and (found[0].name, found[0].epochs, found[0].part, found[0].passes, found[0].settings)
        name, epochs, part, passes, settings = self._world.tell(told)  # type: ignore[misc]  # rank 0 has it
        if found:
            return Start(passes, name, epochs, part, settings, found[0].records, found[1])
        # The sums are those of all ranks, so one of them has them.
        return Start(passes, name, epochs, EpochPart(images=part.images, seconds=part.seconds), settings)

    def differs(self, start: Start, settings: Settings) -> Trouble | None:
        """Return what keeps this training from going on from there, ``None`` if nothing does."""
        for name, value in settings.items():
            # A checkpoint of an earlier release knows nothing of an option that came later.
            theirs = (start.settings or {}).get(name, value)
            if theirs != value:
                word = name.replace("_", "-")
                what = word if name in ("trainer", "samples") else f"--{word}"
                return Trouble(
                    f"{self.folder}: the training there has {what} {theirs}, and this one {value}; "
                    "go on with the same, or begin anew with --fresh"
                )
        return None

    def clear(self) -> None:
        """Remove the checkpoints of an earlier training."""
        with self._at("removed"):
            if self._first:
                checkpoint.remove_all(self.folder)

    @contextlib.contextmanager
    def _at(self, what: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            where = error.filename or self.folder
            raise Trouble(f"{where}: cannot be {what}: {error.strerror or error}", code=1) from error

    def save(
        self,
        loop: "Loop",
        passes: int,
        epochs: int,
        part: EpochPart,
        settings: Settings,
        records: Sequence[Record],
    ) -> str:
        """Write a checkpoint and return its name when it is there; all ranks wait for it.

        Raises:
            Trouble: on rank 0, if it cannot be written; if the training diverged, so that those before stay.
        """
        loss, right, waited = self._world.total([part.loss, part.right, part.waited])
        divergence.refuse(self._world, loss, epochs)
        whole = EpochPart(part.images, loss, int(right), part.seconds, waited)
        progress = TrainingProgress(epochs, whole, passes, settings, records)
        if self._first:
            arrays = loop.state()
            if divergence.is_lost(arrays):
                # The epoch that has ended, or the one that goes on.
                raise divergence.diverged(epochs if part.images else epochs - 1, "a weight is no number")
            checkpoint.write(self.folder, progress, arrays, self._keep)
        return self._world.tell(progress.name)
