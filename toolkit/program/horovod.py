"""Horovod: its ranks find each other by MPI, or by Gloo as toolkit's own wrapper sets it up; pure."""

from collections.abc import Sequence

from toolkit.model.facts import ImageFacts
from toolkit.model.prediction import MPI_MODES, Mode, ProgramName, Starter

NAME: ProgramName = "horovod"
TITLE = "Horovod"
JOINS = frozenset({"horovod"})
MODES: tuple[Mode, ...] = (*MPI_MODES, "gloo")
BY_MPI = True


def in_image(image: ImageFacts) -> bool:
    """Return whether the image has Horovod."""
    return image.horovod is not None


def starter(command: Sequence[str]) -> Starter:  # noqa: ARG001 - the signature of a program
    """Return nothing: the launcher starts the ranks."""
    return ""


def peers(starter: Starter) -> tuple[str, ...]:  # noqa: ARG001
    """Return nothing: mode ``gloo`` has another wrapper, which also shares a secret."""
    return ()
