"""Read the size of a job from the options of torchrun in its command."""

from collections.abc import Mapping
from typing import NamedTuple


class StarterCounts(NamedTuple):
    """The number of nodes and of ranks on each node; ``None`` if no option gives the number."""

    nodes: int | None = None
    ranks_per_node: int | None = None


def read_starter_counts(says: Mapping[str, str]) -> StarterCounts:
    """Return the size that torchrun's options ``--nnodes`` and ``--nproc-per-node`` give.

    ``says`` is as in :class:`toolkit.program.command.CommandFacts`. A range of nodes such as ``1:4``, and
    ``gpu`` or ``auto`` in place of a number, give no size.
    """
    if "PET_STANDALONE" in says:
        return StarterCounts()
    return StarterCounts(_number(says.get("PET_NNODES")), _number(says.get("PET_NPROC_PER_NODE")))


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdigit() and int(text) else None
