"""Horovod: ranks connect through MPI, or through the library Gloo, which needs toolkit's wrapper script."""

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
    """Return an empty string: the launcher starts the ranks, without a starter such as torchrun."""
    return ""


def peers(starter: Starter) -> tuple[str, ...]:  # noqa: ARG001
    """Return an empty tuple: the ranks need no shell lines to connect. In launch mode ``gloo``, toolkit's
    wrapper script sets Horovod's variables and gives all ranks the same secret. In all other launch modes,
    MPI connects the ranks.
    """
    return ()
