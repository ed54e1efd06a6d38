"""``trainers.toml``: the trainers inside the images, as those see them who launch and measure them."""

from functools import cache
from typing import Literal

import msgspec

from toolkit.knowledge.reading import Row, read
from toolkit.model.jobfile import Strategy

Epochs = Literal["each", "shared", "none"]
"""What an epoch is: a pass of each rank, one that all ranks share, or nothing that the trainer has."""


class Shipped(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A trainer and the data that it wants."""

    name: str
    epochs: Epochs
    dataset: str = ""
    bring: bool = False


class Strategies(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What holds for some strategies."""

    mpi: tuple[Strategy, ...]
    apart: tuple[Strategy, ...]
    one_process: tuple[Strategy, ...]


class TrainerKnowledge(Row, frozen=True, kw_only=True):
    """``trainers.toml``."""

    trainer: tuple[Shipped, ...]
    strategies: Strategies


@cache
def trainers() -> TrainerKnowledge:
    """Return what is known of the trainers inside the images."""
    return read("trainers", TrainerKnowledge)


def epochs_of(trainer: str) -> Epochs | None:
    """Return what an epoch of a trainer is; ``None`` for one of a person's own, of which nothing is known."""
    return next((row.epochs for row in trainers().trainer if row.name == trainer), None)
