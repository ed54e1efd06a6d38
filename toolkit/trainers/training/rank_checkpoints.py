"""Let rank 0 read and write the checkpoints of a training, and broadcast the results to all ranks."""

import contextlib
import os
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

    from toolkit.trainers.frameworks import TrainingLoop

Settings = Mapping[str, str | int | float]
_NOTHING = EpochPart()
_OWNER = ".job"
"""The name of a file in the folder of the checkpoints. The file contains the name of the last job that
removed the checkpoints because of ``--fresh``.
"""


@dataclass(frozen=True, slots=True)
class TrainingStart:
    """The point at which a training starts: epoch 0, or the checkpoint ``name``.

    ``passes`` is the number of passes over the data in an epoch. A resumed training keeps its number of
    passes per epoch, even with another number of ranks. ``epochs``, ``part`` and ``settings`` are the values
    in the checkpoint. ``records`` (the metrics lines) and ``arrays`` are set only on rank 0.
    """

    passes: int
    name: str = ""
    epochs: int = 0
    part: EpochPart = _NOTHING
    settings: Settings | None = None
    records: Sequence[Record] = ()
    arrays: "Sequence[numpy.ndarray] | None" = None

    def sentence(self, count: int, size: int) -> str:
        """Return a sentence for the log that says from which checkpoint and epoch the training resumes. The
        data set has ``count`` samples, and all ranks of this run together have ``size`` devices.
        """
        images = self.passes * count
        done = f", of which {self.part.images:,} of {images:,} samples are done" * bool(self.part.images)
        devices = f"{size} devices" if size > 1 else "1 device"
        began = self._began(size)
        shared = f"; this run has {devices}, the earlier run had {began}" * (size != began)
        return f"resumes from checkpoint {self.name} with epoch {self.epochs + 1}{done}{shared}"

    def _began(self, size: int) -> int:
        """Return the total number of devices of the previous run of this training, or ``size`` if unknown."""
        told = [record for record in self.records if "world_size" in record]
        return int(str(told[-1]["world_size"])) * int(str(told[-1].get("devices", 1))) if told else size


class RankCheckpoints:
    """Writes and finds the checkpoints of one training. All ranks must call the same methods of this class in
    the same order.
    """

    def __init__(self, output: Path, world: World, *, count: int) -> None:
        self.folder = output / checkpoint.FOLDER
        self._world, self._keep = world, count
        self._first = world.rank == 0

    def find(self) -> TrainingStart:
        """Return the point at which the training starts: the newest undamaged checkpoint, or epoch 0."""
        with self._at("read"):
            found = checkpoint.newest(self.folder) if self._first else None
        if not self._world.tell(found is not None):
            return TrainingStart(passes=self._world.size)
        told = found and (found[0].name, found[0].epochs, found[0].part, found[0].passes, found[0].settings)
        name, epochs, part, passes, settings = self._world.tell(told)  # type: ignore[misc]  # rank 0 sends it
        if found:
            return TrainingStart(passes, name, epochs, part, settings, found[0].records, found[1])
        # The sums of losses in a checkpoint cover all ranks, so only rank 0 continues these sums.
        return TrainingStart(
            passes, name, epochs, EpochPart(images=part.images, seconds=part.seconds), settings
        )

    def differs(self, start: TrainingStart, settings: Settings) -> Trouble | None:
        """Return an error that names the first setting whose value differs between this run and the
        checkpoint in ``start``. Return ``None`` if all settings are equal.
        """
        for name, value in settings.items():
            # If a checkpoint of an older toolkit release lacks a setting, treat the setting as equal.
            theirs = (start.settings or {}).get(name, value)
            if theirs != value:
                word = name.replace("_", "-")
                what = word if name in ("trainer", "samples") else f"--{word}"
                return Trouble(
                    f"{self.folder}: the training in this folder has {what} {theirs}, but this run has "
                    f"{value}; resume with the same value, or start again with --fresh"
                )
        return None

    def are_of(self, job: str) -> bool:
        """Return whether :meth:`clear` recorded the job named ``job`` as the owner of the checkpoint
        folder.
        """
        try:
            return bool(job) and (self.folder / _OWNER).read_bytes() == os.fsencode(job)
        except OSError:
            return False

    def clear(self, job: str = "") -> None:
        """Remove the checkpoints of an earlier training. If ``job`` is not empty, record the job with this
        name as the owner of the checkpoint folder.
        """
        with self._at("removed"):
            if self._first:
                checkpoint.remove_all(self.folder)
        with self._at("written"):
            if self._first and job:
                self.folder.mkdir(parents=True, exist_ok=True)
                (self.folder / _OWNER).write_bytes(os.fsencode(job))

    @contextlib.contextmanager
    def _at(self, action: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            where = error.filename or self.folder
            raise Trouble(f"{where}: cannot be {action}: {error.strerror or error}", code=1) from error

    def save(
        self,
        loop: "TrainingLoop",
        passes: int,
        epochs: int,
        part: EpochPart,
        settings: Settings,
        records: Sequence[Record],
    ) -> str:
        """Let rank 0 write a checkpoint, and return the checkpoint's name on all ranks.

        Raises:
            Trouble: on rank 0, if the training diverged or the checkpoint cannot be written.
        """
        loss, right, waited = self._world.total([part.loss, part.right, part.waited])
        divergence.refuse(self._world, loss, epochs)
        whole = EpochPart(part.images, loss, int(right), part.seconds, waited)
        progress = TrainingProgress(epochs, whole, passes, settings, records)
        loop.collect()
        if self._first:
            arrays = loop.state()
            if divergence.is_lost(arrays):
                # If this checkpoint is at the start of an epoch, the training diverged in the previous epoch.
                raise divergence.divergence_error(
                    epochs if part.images else epochs - 1, "a weight is not a number"
                )
            checkpoint.write(self.folder, progress, arrays, self._keep)
        return self._world.tell(progress.name)
