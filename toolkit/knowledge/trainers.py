"""Read ``trainers.toml``, which lists the trainers that toolkit ships in its images."""

from functools import cache
from typing import Literal

import msgspec

from toolkit.knowledge.reading import Row, read
from toolkit.model.jobfile import Strategy
from toolkit.model.prediction import ProgramName

Epochs = Literal["each", "shared", "none"]
"""The meaning of an epoch. ``each``: every rank passes over all data. ``shared``: all ranks together pass
over the data once. ``none``: the trainer has no epochs.
"""


class Shipped(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A bundled trainer and the data set that it needs."""

    name: str
    epochs: Epochs
    dataset: str = ""
    bring: bool = False


class Strategies(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Properties of strategies.

    ``mpi`` lists strategies that need MPI and do not work with Gloo. ``apart`` lists strategies in which one
    rank, the coordinator, uses the other ranks as devices, so the coordinator's world has size 1.
    ``one_process`` lists strategies that refuse several ranks.
    """

    mpi: tuple[Strategy, ...]
    apart: tuple[Strategy, ...]
    one_process: tuple[Strategy, ...]


class WithoutMpi(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Strategies of a framework that need neither MPI nor Horovod. ``fact`` is the image fact with the
    framework's version. ``program`` says how the ranks find each other.
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
    """Return the meaning of an epoch in a bundled trainer; ``None`` for the user's own trainer."""
    return next((row.epochs for row in trainers().trainer if row.name == trainer), None)
