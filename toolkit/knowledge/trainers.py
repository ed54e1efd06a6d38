"""``trainers.toml``: the trainers inside images, for code that launches and measures them."""

from functools import cache
from typing import Literal

import msgspec

from toolkit.knowledge.reading import Row, read
from toolkit.model.jobfile import Strategy
from toolkit.model.prediction import ProgramName

Epochs = Literal["each", "shared", "none"]
"""The meaning of an epoch: a pass of each rank, one pass of all ranks together, or not applicable."""


class Shipped(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A trainer and the data that it needs."""

    name: str
    epochs: Epochs
    dataset: str = ""
    bring: bool = False


class Strategies(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Properties of the named strategies."""

    mpi: tuple[Strategy, ...]
    apart: tuple[Strategy, ...]
    one_process: tuple[Strategy, ...]


class OtherFramework(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A framework beside TensorFlow: its fact of an image, its strategies, and how their ranks meet."""

    fact: str
    program: ProgramName
    strategies: tuple[Strategy, ...]


class TrainerKnowledge(Row, frozen=True, kw_only=True):
    """``trainers.toml``."""

    trainer: tuple[Shipped, ...]
    strategies: Strategies
    framework: tuple[OtherFramework, ...]


@cache
def trainers() -> TrainerKnowledge:
    """Return the table of the trainers inside images."""
    return read("trainers", TrainerKnowledge)


def epochs_of(trainer: str) -> Epochs | None:
    """Return the meaning of an epoch of a trainer; ``None`` for the user's own trainer."""
    return next((row.epochs for row in trainers().trainer if row.name == trainer), None)
