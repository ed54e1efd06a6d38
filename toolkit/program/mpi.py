"""MPI programs: ranks connect through the MPI library."""

from collections.abc import Sequence

from toolkit.model.facts import ImageFacts
from toolkit.model.prediction import MPI_MODES, Mode, ProgramName, Starter

NAME: ProgramName = "mpi"
TITLE = "MPI"
JOINS = frozenset({"mpi"})
MODES: tuple[Mode, ...] = MPI_MODES
BY_MPI = True


def in_image(image: ImageFacts) -> bool:
    """Return whether the image has an MPI library."""
    return image.mpi is not None


def starter(command: Sequence[str]) -> Starter:  # noqa: ARG001 - the Program protocol has this argument
    """Return an empty string: the launcher starts the ranks, without a starter such as torchrun."""
    return ""


def peers(starter: Starter) -> tuple[str, ...]:  # noqa: ARG001
    """Return an empty tuple: the ranks need no shell lines to connect, because the MPI library gets
    the ranks' addresses from the launcher.
    """
    return ()
