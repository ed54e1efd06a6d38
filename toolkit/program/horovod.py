"""Horovod: ranks connect through MPI, or through Gloo with toolkit's wrapper."""

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


def starter(command: Sequence[str]) -> Starter:  # noqa: ARG001 - the Program protocol has this argument
    """Return an empty string for "no starter", because the launcher starts the ranks."""
    return ""


def peers(starter: Starter) -> tuple[str, ...]:  # noqa: ARG001
    """Return no shell lines, because the wrapper of launch mode ``gloo`` sets Horovod's variables and gives
    all ranks the same secret.
    """
    return ()
