"""Adapters to TensorFlow, PyTorch and JAX. A trainer imports only the framework of its strategy."""

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
    """Whether rank 0's sum of losses is the sum over the samples of all ranks, not only over rank 0's
    samples.
    """

    def epoch(self, number: int, passes: int, part: "EpochPart", pause: "Pause") -> "Trained":
        """Make the training steps that remain in epoch ``number``, counted from 0. Return the results of the
        whole epoch, including its earlier steps.
        """

    def evaluate(self, data: "Data") -> "Score":
        """Return the model's score on ``data``. Each rank evaluates a part of the samples."""

    @property
    def learning_rate(self) -> float:
        """The learning rate of the last step."""

    @property
    def parameters(self) -> int:
        """The number of the model's parameters."""

    def collect(self) -> None:
        """If each rank stores only a part of the values (shards), collect all parts on rank 0. All ranks must
        call this method before ``state`` and ``save``.
        """

    def state(self) -> "list[numpy.ndarray]":
        """Return the state of model and optimizer as complete arrays, not as the parts of one rank."""

    def restore(self, arrays: "Sequence[numpy.ndarray] | None") -> None:
        """Load a state of model and optimizer on all ranks. Only rank 0 passes the state in ``arrays``."""

    def save(self, path: "Path") -> None:
        """Write the model to a file."""


class Framework(Protocol):
    """Interface of the framework modules in this package."""

    TITLE: str
    """The framework's name in messages."""

    MODEL: str
    """The file name of the trained model."""

    def prepare_devices(self, world: "World") -> int:
        """Select this rank's devices and CPU cores, and return the number of cores."""

    def gpus(self, world: "World") -> tuple[int, list[int]]:
        """Return the number of GPUs that this rank sees, and the indices of the GPUs that this rank uses."""

    def seed(self, number: int) -> None:
        """Set the seed of all random number generators."""

    def loop(
        self, trainer: "Trainer", options: "Options", world: "World", samples: "Data", epochs: int
    ) -> TrainingLoop:
        """Build the model, optimizer and training step, and copy rank 0's variables to all ranks."""

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
