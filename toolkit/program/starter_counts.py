"""Read the size of a job from the options of torchrun, accelerate or deepspeed in its command."""

from collections.abc import Mapping
from typing import NamedTuple


class StarterCounts(NamedTuple):
    """The number of nodes and of ranks on each node; ``None`` if no option gives the number."""

    nodes: int | None = None
    ranks_per_node: int | None = None


def read_starter_counts(says: Mapping[str, str], nodes: int) -> StarterCounts:
    """Return the size that options of a starter give, such as torchrun's ``--nproc-per-node``.

    The function ignores a range of nodes such as ``1:4``, and the words ``gpu`` and ``auto`` instead of a
    number.

    Args:
        says: as in :class:`toolkit.program.command.CommandFacts`.
        nodes: the number of nodes if no option gives the number; accelerate's ``--num_processes`` counts the
            ranks of all nodes.
    """
    if "PET_STANDALONE" in says:
        return StarterCounts()
    given = _first(says, "PET_NNODES", "accelerate_machines", "deepspeed_nodes")
    each = _first(says, "PET_NPROC_PER_NODE", "deepspeed_gpus")
    if processes := _first(says, "accelerate_processes"):
        each, left = divmod(processes, given or nodes)
        each = each if not left else None
    return StarterCounts(given, each)


def _first(says: Mapping[str, str], *names: str) -> int | None:
    """Return the value of the first of the names that is in ``says``, if the value is a positive number."""
    text = next((says[name] for name in names if name in says), "")
    return int(text) if text.isascii() and text.isdigit() and int(text) else None
