"""Programs: how the ranks of a job find each other.

A new program is a module in this package, and its name in the model.
"""

from collections.abc import Sequence
from functools import cache
from typing import Protocol

from toolkit.model.facts import ImageFacts
from toolkit.model.prediction import Mode, ProgramName, Starter
from toolkit.program import horovod, jax, mpi, serial, tf_config, torch


class Program(Protocol):
    """What a module of this package has."""

    NAME: ProgramName
    """The name in options and records."""
    TITLE: str
    """The name in sentences."""
    JOINS: frozenset[str]
    """The libraries by which its scripts join their ranks, as :mod:`toolkit.program.script` names them."""
    MODES: tuple[Mode, ...]
    """Launch modes for this kind of program, in the order of the model."""
    BY_MPI: bool
    """Its ranks find each other through MPI, or through an interface of an MPI launcher."""

    def in_image(self, image: ImageFacts) -> bool:
        """Return whether the image has what the program is written with."""
        ...

    def starter(self, command: Sequence[str]) -> Starter:
        """Return what starts the ranks of a node, if ``command`` names such a starter."""
        ...

    def peers(self, starter: Starter) -> tuple[str, ...]:
        """Return shell lines that give the program its rank and the addresses of its peers.

        They find in variables: ``first``, ``nodes`` (names), ``port``, ``job``, ``rank``, ``ranks``,
        ``local_rank``, ``local_ranks``, ``node_rank``, ``node_count``; and the command as ``"$@"``.
        No lines, because the program needs none.
        """
        ...


ALL_PROGRAMS: tuple[Program, ...] = (mpi, horovod, torch, jax, tf_config, serial)


@cache
def program_of_name(name: ProgramName) -> Program:
    """Return the program of a name."""
    return next(program for program in ALL_PROGRAMS if name == program.NAME)


def of_mode(mode: Mode) -> Program:
    """Return the program that a launch mode is meant for; MPI modes serve MPI first of all."""
    return next(program for program in ALL_PROGRAMS if mode in program.MODES)
