"""A trainer, and the options that every trainer has."""

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
    """Do nothing: the default of a trainer without a check and without its own options."""


@dataclass(frozen=True, slots=True)
class Network:
    """A model in PyTorch or JAX; its module says what ``model`` returns and ``augment`` takes.

    ``model`` returns a new model (:mod:`toolkit.trainers.models.torchnetworks`). ``augment`` augments the
    inputs of a batch at random while the model trains.
    """

    model: Callable[[], Any]
    augment: Callable[[Any, Any], Any] | None = None


@dataclass(frozen=True, slots=True)
class Trainer:
    """A model, its data and the defaults for both.

    ``data`` names the data set; a trainer without one needs no ``--data``. ``fetched`` says whether ``toolkit
    data get`` downloads it. ``check`` checks the data without loading it, ``load`` returns the samples for
    training and testing, and ``model`` returns a Keras model, whose outputs are logits for inputs as they are
    stored; it is ``None`` for a trainer with other ``networks`` only. ``variant`` distinguishes trainings of
    one name; a training can only be resumed with the same variant.

    ``passes`` is the meaning of an epoch. With ``each``, every rank trains on as many samples as there are,
    so that N ranks go N times through the data; with ``shared``, all ranks together go through it once.
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
    """Augments the inputs of a batch at random while the model trains."""
    networks: Mapping[FrameworkName, Network] = field(default_factory=dict)
    """The same model in other frameworks: ``pytorch`` or ``jax``."""
    passes: Passes = "shared"
    variant: Mapping[str, str | int | float] = field(default_factory=dict)
    add_options: Callable[[argparse.ArgumentParser], None] = nothing
    """Adds the trainer's own options to the command line."""
    configured: "Callable[[Trainer, argparse.Namespace], Trainer] | None" = None
    """Returns the trainer that these options configure, or raises ``Trouble``."""
    unused: tuple[str, ...] = ()
    """Common options that this trainer does not use, such as ``--tensorboard``."""
    run: "Callable[[Trainer, Options, World, int], None] | None" = None
    """Replaces the training: a function of the options, all ranks, and the cores of this one."""

    @property
    def keras_model(self) -> "Callable[[], tf.keras.Model]":
        """Return what makes the model in Keras.

        Raises:
            Trouble: if the trainer has no model in Keras.
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
    """The user's options. ``epochs`` is for all ranks together, ``batch_size`` for each device.

    A ``batch_size`` of 0 is found by trial, up to ``batch_limit``. ``fresh`` ignores existing checkpoints,
    ``keep`` is how many checkpoints stay, ``checkpoint_seconds`` the time between checkpoints within an
    epoch, and ``log_seconds`` the time between lines in the log.
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
