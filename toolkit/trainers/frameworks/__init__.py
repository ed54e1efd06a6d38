"""Adapters to TensorFlow, PyTorch and JAX. A trainer imports only the framework that ``--strategy`` needs."""

import importlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from toolkit.trainers.kinds import FrameworkName

if TYPE_CHECKING:
    from pathlib import Path

    import numpy

    from toolkit.trainers.data.sources import Data
    from toolkit.trainers.ranks.world import World
    from toolkit.trainers.trainer import Options, Trainer
    from toolkit.trainers.training.checkpoint import EpochPart
    from toolkit.trainers.training.rounds import Pause, Score, Trained


class TrainingLoop(Protocol):
    """Trains a model on this rank's share of the samples. All ranks make their training steps together."""

    SUMS_ALL: bool
    """True if rank 0's sum of losses covers the samples of all ranks, and false if it covers only rank 0's
    samples.
    """

    def epoch(self, number: int, passes: int, part: "EpochPart", pause: "Pause") -> "Trained":
        """Make the training steps that remain in epoch ``number`` (0 is the first epoch). Return the results
        of the whole epoch, including the steps before a resume.

        In an epoch, the ranks together make ``passes`` passes over the data. ``part`` is the progress of the
        epoch before this call. Every few seconds, the loop calls ``pause``, which returns the number of
        steps to make before the next call. ``pause`` may raise an exception to stop the training.
        """

    def evaluate(self, data: "Data") -> "Score":
        """Return the model's score on ``data``. Each rank evaluates a part of the samples."""

    @property
    def learning_rate(self) -> float:
        """The learning rate of the latest training step."""

    @property
    def parameters(self) -> int:
        """The number of the model's parameters."""

    def collect(self) -> None:
        """If each rank stores only a part (shard) of the model and optimizer, collect all parts on rank 0.
        All ranks must call this method before ``state`` and ``save``.
        """

    def state(self) -> "list[numpy.ndarray]":
        """Return the complete state of model and optimizer as arrays, even if ranks store only parts."""

    def restore(self, arrays: "Sequence[numpy.ndarray] | None") -> None:
        """Load a state of model and optimizer on all ranks. Rank 0 passes the state in ``arrays``;
        the other ranks pass ``None``.
        """

    def save(self, path: "Path") -> None:
        """Write the trained model to a file in the framework's format."""


class Framework(Protocol):
    """The interface of the adapter modules ``tensorflow``, ``pytorch`` and ``jax`` in this package."""

    TITLE: str
    """The framework's name in messages."""

    MODEL: str
    """The file name of the trained model."""

    def prepare_devices(self, world: "World") -> int:
        """Select this rank's devices and CPU cores, and return the number of CPU cores."""

    def gpus(self, world: "World") -> tuple[int, list[int]]:
        """Return the number of GPUs that this rank sees, and the indices of the GPUs that this rank uses."""

    def seed(self, number: int) -> None:
        """Set the seed of all global random number generators that the framework uses."""

    def loop(
        self, trainer: "Trainer", options: "Options", world: "World", samples: "Data", epochs: int
    ) -> TrainingLoop:
        """Return a training loop with a new model and optimizer. All ranks start with rank 0's variables."""

    def versions(self) -> dict[str, str]:
        """Return the versions of the framework and of NumPy."""


def framework_of(world: "World") -> Framework:
    """Return toolkit's adapter module for the framework with which the ranks of ``world`` train."""
    return framework_named(world.framework)


def framework_named(name: FrameworkName) -> Framework:
    """Return toolkit's adapter module for the framework ``name``. The adapter module imports the framework
    only when toolkit first uses the framework.
    """
    module: Framework = importlib.import_module(f"{__name__}.{name}")
    return module
