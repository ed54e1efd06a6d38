"""Read ``trainers.toml``, which lists the trainers that toolkit ships in its images."""

from functools import cache
from typing import Literal

import msgspec

from toolkit.knowledge.reading import Row, read
from toolkit.model.jobfile import Strategy
from toolkit.model.prediction import ProgramName

Epochs = Literal["each", "shared", "none"]
"""The data that ranks read in one epoch of a trainer. ``each``: every rank reads all data. ``shared``: all
ranks together read the data once. ``none``: the trainer has no epochs.
"""


class Shipped(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A trainer that toolkit ships.

    ``dataset`` is the data set that ``toolkit data get`` downloads for the trainer. If ``bring`` is true, the
    user must supply the data.
    """

    name: str
    epochs: Epochs
    dataset: str = ""
    bring: bool = False


class Strategies(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Strategies for distributed training that have special requirements.

    ``mpi`` lists strategies that need MPI and do not work with Gloo. ``apart`` lists strategies in which one
    rank, the coordinator, uses all other ranks as devices. The coordinator then reports a world of size 1.
    ``one_process`` lists strategies that work only with one rank.
    """

    mpi: tuple[Strategy, ...]
    apart: tuple[Strategy, ...]
    one_process: tuple[Strategy, ...]


class WithoutMpi(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Strategies of a framework that need neither MPI nor Horovod.

    ``fact`` is the name of the image fact that contains the framework's version. ``program`` is the kind of
    program, such as ``torch``, which determines how the ranks find each other.
    """

    fact: str
    program: ProgramName
    strategies: tuple[Strategy, ...]


class TrainerKnowledge(Row, frozen=True, kw_only=True):
    """The content of ``trainers.toml``."""

    trainer: tuple[Shipped, ...]
    strategies: Strategies
    framework: tuple[WithoutMpi, ...]


@cache
def trainers() -> TrainerKnowledge:
    """Return the content of ``trainers.toml``."""
    return read("trainers", TrainerKnowledge)


def epochs_of(trainer: str) -> Epochs | None:
    """Return which data an epoch of a bundled trainer covers; ``None`` for the user's own trainer."""
    return next((row.epochs for row in trainers().trainer if row.name == trainer), None)
