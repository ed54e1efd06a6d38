"""Programs whose ranks do not join: each rank runs a copy of the program alone; pure."""

from collections.abc import Sequence

from toolkit.model.facts import ImageFacts
from toolkit.model.prediction import Mode, ProgramName, Starter

NAME: ProgramName = "serial"
TITLE = "a program that does not join its ranks"
JOINS: frozenset[str] = frozenset()
MODES: tuple[Mode, ...] = ("srun-none",)
BY_MPI = False


def in_image(image: ImageFacts) -> bool:  # noqa: ARG001 - the signature of a program
    """Return false: no image says that its programs are serial."""
    return False


def starter(command: Sequence[str]) -> Starter:  # noqa: ARG001
    """Return nothing."""
    return ""


def peers(starter: Starter) -> tuple[str, ...]:  # noqa: ARG001
    """Return no lines, because there are no peers."""
    return ()
