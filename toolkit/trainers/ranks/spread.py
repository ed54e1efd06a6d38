"""Command-line options that apply only to some strategies."""

import argparse
from dataclasses import dataclass
from typing import Self

from toolkit.trainers.words import count

_FOR = {
    "devices": ("mirrored", "hybrid"),
    "servers": ("ps",),
    "sync": ("ps",),
    "ksteps": ("mpi-aggregate",),
}


@dataclass(frozen=True, slots=True)
class RankSpread:
    """Command-line options that apply only to some strategies.

    ``devices`` is the number of GPUs per rank, or 0 for the rank's share of its node's GPUs. ``servers`` is
    the number of parameter servers, or 0 for a quarter of the ranks. ``ksteps`` is the number of synchronous
    training steps at the start, or -1 if all training steps are synchronous.
    """

    devices: int = 0
    servers: int = 0
    sync: bool = False
    ksteps: int = -1

    @staticmethod
    def add_options(parser: argparse.ArgumentParser) -> None:
        """Add to a command-line parser the options that apply only to some strategies."""
        add = parser.add_argument_group("distribution").add_argument
        text = (
            "mirrored, hybrid: number of GPUs per rank or, without GPUs, number of logical CPU devices per "
            "rank; default: the node's GPUs divided among its ranks"
        )
        add("--devices", type=count, default=0, metavar="N", help=text)
        text = "ps: number of parameter servers; default: a quarter of the ranks"
        add("--servers", type=count, default=0, metavar="N", help=text)
        text = "ps: update the model once per step, with the average of the gradients of all workers"
        add("--sync", action="store_true", help=text)
        text = (
            "mpi-aggregate: after the first K steps, each step uses the gradients of the previous step; "
            "default: each step uses its own gradients"
        )
        add("--ksteps", type=_steps, default=-1, metavar="K", help=text)

    @classmethod
    def taken(cls, options: dict[str, object]) -> Self:
        """Remove the options of this class from the parsed command-line options, and return the removed
        options.
        """
        return cls(**{name: options.pop(name) for name in cls.__slots__})  # type: ignore[arg-type]

    def misplaced(self, strategy: str) -> str:
        """Return an error message about the first option that the user set but ``strategy`` does not use.
        Return an empty string if ``strategy`` uses all options that the user set.
        """
        for name, strategies in _FOR.items():
            if getattr(self, name) != getattr(PLAIN, name) and strategy not in strategies:
                return f"--{name}: only for --strategy {' or '.join(strategies)}, not for {strategy}"
        return ""


def _steps(text: str) -> int:
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"{value} is less than 0")
    return value


PLAIN = RankSpread()
