"""Read the size of a job from the options of torchrun or accelerate in its command."""

from collections.abc import Mapping
from typing import NamedTuple


class StarterCounts(NamedTuple):
    """The number of nodes and of ranks on each node; ``None`` if no option gives the number."""

    nodes: int | None = None
    ranks_per_node: int | None = None


def read_starter_counts(says: Mapping[str, str], nodes: int) -> StarterCounts:
    """Return the size that torchrun's ``--nnodes`` and ``--nproc-per-node`` give, or options of accelerate.

    A range of nodes such as ``1:4``, and ``gpu`` or ``auto`` in place of a number, give no size.

    Args:
        says: as in :class:`toolkit.program.command.CommandFacts`.
        nodes: the number of nodes if no option gives the number; accelerate's ``--num_processes`` counts the
            ranks of all nodes.
    """
    if "PET_STANDALONE" in says:
        return StarterCounts()
    processes, machines = (_number(says.get(f"accelerate_{name}")) for name in ("processes", "machines"))
    if processes is None:
        return StarterCounts(
            _number(says.get("PET_NNODES")) or machines, _number(says.get("PET_NPROC_PER_NODE"))
        )
    each, left = divmod(processes, machines or nodes)
    return StarterCounts(machines, each if not left else None)


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdigit() and int(text) else None
