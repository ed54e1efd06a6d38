"""Program kinds, such as MPI and PyTorch: how the ranks of a program join each other.

A new program kind is a module in this package, and a name in the model.
"""

from collections.abc import Sequence
from functools import cache
from typing import Protocol

from toolkit.model.facts import ImageFacts
from toolkit.model.prediction import Mode, ProgramName, Starter
from toolkit.program import horovod, jax, mpi, serial, tf_config, torch


class Program(Protocol):
    """The attributes that each module of this package has."""

    NAME: ProgramName
    """The name of the program kind in options and records."""
    TITLE: str
    """The name of the program kind in sentences."""
    JOINS: frozenset[str]
    """The libraries with which scripts of this kind join their ranks, as in :mod:`toolkit.program.script`."""
    MODES: tuple[Mode, ...]
    """The launch modes for this program kind, in the order of the model."""
    BY_MPI: bool
    """Whether the ranks join through MPI, or through an interface of an MPI launcher."""

    def in_image(self, image: ImageFacts) -> bool:
        """Return whether the image contains the library of this program kind."""
        ...

    def starter(self, command: Sequence[str]) -> Starter:
        """Return the starter that ``command`` names, such as ``torchrun``, or an empty string."""
        ...

    def peers(self, starter: Starter) -> tuple[str, ...]:
        """Return shell lines that set the program's variables with its rank and the addresses of other ranks.

        The lines may use the shell variables ``first``, ``nodes`` (node names), ``port``, ``job``, ``rank``,
        ``ranks``, ``local_rank``, ``local_ranks``, ``node_rank`` and ``node_count``, and the command as
        ``"$@"``. The result is empty if the program needs no variables.
        """
        ...


ALL_PROGRAMS: tuple[Program, ...] = (mpi, horovod, torch, jax, tf_config, serial)


@cache
def program_of_name(name: ProgramName) -> Program:
    """Return the program kind with a name."""
    return next(program for program in ALL_PROGRAMS if name == program.NAME)


def of_mode(mode: Mode) -> Program:
    """Return the program kind for which a launch mode is meant: the first kind that lists the mode."""
    return next(program for program in ALL_PROGRAMS if mode in program.MODES)
