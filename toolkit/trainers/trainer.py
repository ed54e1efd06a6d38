"""The definition of a trainer, and the options that all trainers have."""

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from toolkit.trainers.data.sources import Data
from toolkit.trainers.kinds import FrameworkName
from toolkit.trainers.learning.policy import Learning
from toolkit.trainers.ranks.spread import PLAIN, RankSpread
from toolkit.trainers.ranks.tuning import UNTUNED, Tuning
from toolkit.trainers.training.loop import Augment
from toolkit.trainers.trouble import Trouble

if TYPE_CHECKING:
    import tensorflow as tf

    from toolkit.trainers.ranks.world import World


Passes = Literal["each", "shared"]


def nothing(_: object) -> None:
    """Do nothing: the default of the fields ``check`` and ``add_options`` of :class:`Trainer`."""


@dataclass(frozen=True, slots=True)
class Network:
    """A model in PyTorch or JAX.

    ``model`` returns a new model, as in :mod:`toolkit.trainers.models.torchnetworks` or
    :mod:`toolkit.trainers.models.jaxnetworks`. ``augment`` changes the inputs of each training batch at
    random.
    """

    model: Callable[[], Any]
    augment: Callable[[Any, Any], Any] | None = None


@dataclass(frozen=True, slots=True)
class Trainer:
    """The definition of a trainer: a model, its data, and the defaults of the options.

    ``data`` is the name of the data set. If the name is empty, the trainer needs no ``--data``. ``fetched``
    says whether ``toolkit data get`` can download the data set. ``check`` checks the data without loading it.
    ``load`` returns the samples for training and testing. ``model`` returns a Keras model that computes
    logits from the inputs that ``load`` returns. ``model`` is ``None`` if the trainer has only PyTorch or JAX
    models, in ``networks``. ``variant`` contains the settings, such as the model's name, that distinguish the
    trainings of one trainer. A run can resume a training only if both have the same ``variant``.

    ``passes`` defines how many passes over the data an epoch has. With ``each``, every device trains on as
    many samples as the data set has, so N devices make N passes over the data. With ``shared``, all ranks
    together make one pass over the data.
    """

    name: str
    model: "Callable[[], tf.keras.Model] | None"
    load: Callable[[Path], tuple[Data, Data]]
    epochs: int
    batch_size: int
    learning: Learning
    data: str = ""
    fetched: bool = True
    check: Callable[[Path], None] = nothing
    tuning: Tuning = UNTUNED
    """Horovod's message settings for this model if ranks compute on CPUs."""
    augment: "Augment | None" = None
    """A function that changes the inputs of each training batch of the Keras model at random."""
    networks: Mapping[FrameworkName, Network] = field(default_factory=dict)
    """The trainer's model in PyTorch and JAX, under the keys ``pytorch`` and ``jax``."""
    passes: Passes = "shared"
    variant: Mapping[str, str | int | float] = field(default_factory=dict)
    add_options: Callable[[argparse.ArgumentParser], None] = nothing
    """A function that adds this trainer's options to the command line."""
    configured: "Callable[[Trainer, argparse.Namespace], Trainer] | None" = None
    """A function that returns a copy of the trainer, changed as the parsed options require. The function
    raises ``Trouble`` if an option is wrong.
    """
    unused: tuple[str, ...] = ()
    """Common options that this trainer does not use, such as ``--tensorboard``."""
    run: "Callable[[Trainer, Options, World, int], None] | None" = None
    """A function that runs instead of the training loop. Its arguments are the trainer, the options, the
    ranks (:class:`~toolkit.trainers.ranks.world.World`), and the number of CPU cores for each rank.
    """

    @property
    def keras_model(self) -> "Callable[[], tf.keras.Model]":
        """The function that creates the Keras model.

        Raises:
            Trouble: if the trainer has no Keras model.
        """
        if self.model is None:
            raise Trouble(f"{self.name} has no model in TensorFlow")
        return self.model

    @property
    def frameworks(self) -> tuple[FrameworkName, ...]:
        """The frameworks in which the trainer has a model."""
        keras: tuple[FrameworkName, ...] = ("tensorflow",) if self.model else ()
        return (*keras, *self.networks)


@dataclass(frozen=True)
class Options:
    """The user's options. ``epochs`` is the value of ``--epochs``: the total number of passes over the data
    that all ranks together make. ``batch_size`` is the number of samples in a batch of one device.

    If ``batch_size`` is 0, the trainer tries batch sizes up to ``batch_limit`` and chooses a fast batch size.
    If ``fresh`` is true, the trainer ignores the checkpoints of earlier jobs. The trainer keeps the newest
    ``keep`` checkpoints. ``checkpoint_seconds`` is the time in seconds between checkpoints within an epoch,
    and ``log_seconds`` is the time in seconds between log lines.
    """

    data: Path | None
    output: Path
    strategy: str
    epochs: int
    batch_size: int
    learning: Learning
    seed: int
    spread: RankSpread = PLAIN
    fresh: bool = False
    keep: int = 3
    checkpoint_seconds: float = 600.0
    log_seconds: float = 60.0
    tensorboard: bool = False
    batch_limit: int = 4096
    tuning: Tuning = UNTUNED
