"""Program kinds, such as MPI and PyTorch. A program kind defines how the ranks of a program connect to each
other.

To add a program kind, add a module to this package and to :data:`ALL_PROGRAMS`, and a name to
:data:`toolkit.model.prediction.ProgramName`.
"""

from collections.abc import Sequence
from functools import cache
from typing import Protocol

from toolkit.model.facts import ImageFacts
from toolkit.model.prediction import Mode, ProgramName, Starter
from toolkit.program import horovod, jax, mpi, serial, tf_config, torch


class Program(Protocol):
    """The attributes that the module of each program kind has."""

    NAME: ProgramName
    """Name of the program kind in options and in JSON output."""
    TITLE: str
    """Name of the program kind in sentences."""
    JOINS: frozenset[str]
    """The libraries with which scripts of this kind connect their ranks, such as ``horovod``."""
    MODES: tuple[Mode, ...]
    """The launch modes for this program kind, in the order of :data:`toolkit.model.prediction.MODES`."""
    BY_MPI: bool
    """True if the ranks connect through MPI, or through an interface of an MPI launcher."""

    def in_image(self, image: ImageFacts) -> bool:
        """Return whether the image contains a library of this program kind."""
        ...

    def starter(self, command: Sequence[str]) -> Starter:
        """Return the program, such as ``torchrun``, with which ``command`` starts the ranks of a node; empty
        if the command contains no such program.
        """
        ...

    def peers(self, starter: Starter) -> tuple[str, ...]:
        """Return shell lines that set the variables from which a program reads its rank and the addresses of
        other ranks.

        The lines may use the shell variables ``first`` (first node), ``nodes`` (node names), ``port``,
        ``job``, ``rank``, ``ranks``, ``local_rank``, ``local_ranks``, ``node_rank`` and ``node_count``. In a
        shell line, ``"$@"`` is the user's command. The result is empty if the program needs no variables.
        """
        ...


ALL_PROGRAMS: tuple[Program, ...] = (mpi, horovod, torch, jax, tf_config, serial)


@cache
def program_of_name(name: ProgramName) -> Program:
    """Return the program kind whose ``NAME`` is ``name``."""
    return next(program for program in ALL_PROGRAMS if name == program.NAME)


def of_mode(mode: Mode) -> Program:
    """Return the program kind of a launch mode: the first kind whose ``MODES`` contain the mode."""
    return next(program for program in ALL_PROGRAMS if mode in program.MODES)
