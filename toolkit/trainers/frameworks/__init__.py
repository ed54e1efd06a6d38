"""What trains a model: TensorFlow, PyTorch or JAX. A trainer imports the framework of its strategy."""

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
    """A model that trains on this rank's share of the samples, in step with all other ranks."""

    def epoch(self, number: int, passes: int, part: "EpochPart", pause: "Pause") -> "Trained":
        """Train the rest of an epoch, counted from 0."""

    def evaluate(self, data: "Data") -> "Score":
        """Score the model on samples that are divided among the ranks."""

    @property
    def learning_rate(self) -> float:
        """The rate of the last step."""

    @property
    def parameters(self) -> int:
        """The number of the model's parameters."""

    def collect(self) -> None:
        """Copy values that ranks hold in parts to rank 0; all ranks call it before ``state`` and ``save``."""

    def state(self) -> "list[numpy.ndarray]":
        """Return the state of the training, model and optimizer, in whole arrays."""

    def restore(self, arrays: "Sequence[numpy.ndarray] | None") -> None:
        """Load a state on all ranks, from rank 0."""

    def save(self, path: "Path") -> None:
        """Write the model to a file."""


class Framework(Protocol):
    """What a module of this package has."""

    TITLE: str
    """The framework's name in a sentence."""

    MODEL: str
    """The file of the trained model."""

    def prepare_devices(self, world: "World") -> int:
        """Select this rank's devices and cores; return the number of cores."""

    def gpus(self, world: "World") -> tuple[int, list[int]]:
        """Return the number of GPUs that this rank sees, and the GPUs on which it computes."""

    def seed(self, number: int) -> None:
        """Set the seed of all random draws."""

    def loop(
        self, trainer: "Trainer", options: "Options", world: "World", samples: "Data", epochs: int
    ) -> TrainingLoop:
        """Build model, optimizer and step, and start all ranks from the variables of rank 0."""

    def versions(self) -> dict[str, str]:
        """Return the versions of the framework and of NumPy."""


def framework_of(world: "World") -> Framework:
    """Return the framework that the ranks train with."""
    return framework_named(world.framework)


def framework_named(name: FrameworkName) -> Framework:
    """Return the framework of a name; its module imports the framework itself where it is first used."""
    module: Framework = importlib.import_module(f"{__name__}.{name}")
    return module
