"""Serial programs: the ranks do not connect, and each rank runs a separate copy of the program."""

from collections.abc import Sequence

from toolkit.model.facts import ImageFacts
from toolkit.model.prediction import Mode, ProgramName, Starter

NAME: ProgramName = "serial"
TITLE = "a program that does not connect its ranks"
JOINS: frozenset[str] = frozenset()
MODES: tuple[Mode, ...] = ("srun-none",)
BY_MPI = False


def in_image(image: ImageFacts) -> bool:  # noqa: ARG001 - the Program protocol has this argument
    """Return False, because an image does not show whether its programs are serial."""
    return False


def starter(command: Sequence[str]) -> Starter:  # noqa: ARG001
    """Return an empty string: the launcher starts the copies, without a starter such as torchrun."""
    return ""


def peers(starter: Starter) -> tuple[str, ...]:  # noqa: ARG001
    """Return no shell lines, because the copies of the program do not communicate."""
    return ()
