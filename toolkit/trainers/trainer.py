"""A trainer, and what a person may choose for a run of any of them."""

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from toolkit.trainers.data.sources import Data
from toolkit.trainers.learning.policy import Learning
from toolkit.trainers.ranks.spread import PLAIN, RankSpread
from toolkit.trainers.ranks.tuning import UNTUNED, Tuning
from toolkit.trainers.training.loop import Augment

if TYPE_CHECKING:
    import tensorflow as tf

    from toolkit.trainers.ranks.world import World


Passes = Literal["each", "shared"]


def nothing(_: object) -> None:
    """Do nothing: what a trainer does that has nothing to check, and no options of its own."""


@dataclass(frozen=True, slots=True)
class Trainer:
    """A model, its data and the defaults for both.

    ``data`` names the set that it trains on; a trainer without one needs no ``--data``. ``fetched`` tells
    whether ``toolkit data get`` brings it.
    ``check`` looks at the data without loading any of it, ``load`` returns the samples for training and those
    for the test, and ``model`` answers with logits to inputs as they are stored. ``variant`` says what makes
    it different from others of its name; a training goes on with the same only.

    ``passes`` is what an epoch is: where it is ``each``, every rank trains on as many samples as there are,
    so that N ranks go N times through the data; where it is ``shared``, all of them go through it once.
    """

    name: str
    model: "Callable[[], tf.keras.Model]"
    load: Callable[[Path], tuple[Data, Data]]
    epochs: int
    batch_size: int
    learning: Learning
    data: str = ""
    fetched: bool = True
    check: Callable[[Path], None] = nothing
    tuning: Tuning = UNTUNED
    """What Horovod is told about this model's messages where ranks compute on processors."""
    augment: "Augment | None" = None
    """Changes the inputs of a batch at random while the model trains."""
    passes: Passes = "shared"
    variant: Mapping[str, str | int | float] = field(default_factory=dict)
    add_options: Callable[[argparse.ArgumentParser], None] = nothing
    """Adds the trainer's own options to the command line."""
    configured: "Callable[[Trainer, argparse.Namespace], Trainer] | None" = None
    """Returns the trainer that these options make of it, once they have been read; or raises ``Trouble``."""
    unused: tuple[str, ...] = ()
    """Options that all trainers have and this one has no use for, such as ``--tensorboard``."""
    run: "Callable[[Trainer, Options, World, int], None] | None" = None
    """Is done instead of a training: with the options, all ranks, and the cores of this one."""


@dataclass(frozen=True)
class Options:
    """What a person chose. ``epochs`` is for all ranks together, ``batch_size`` for each device.

    A ``batch_size`` of 0 is found by trial, up to ``batch_limit``. ``fresh`` begins anew where there is a
    checkpoint, ``keep`` is how many of them stay, ``checkpoint_seconds`` how long a training goes on without
    one within an epoch, and ``log_seconds`` without a line in the log.
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
