"""Read the numbers of nodes and ranks from the options of torchrun, accelerate or deepspeed in a command."""

from collections.abc import Mapping
from typing import NamedTuple


class StarterCounts(NamedTuple):
    """The number of nodes and of ranks per node; ``None`` for a number that the command does not set."""

    nodes: int | None = None
    ranks_per_node: int | None = None


def read_starter_counts(settings: Mapping[str, str], nodes: int) -> StarterCounts:
    """Return the numbers of nodes and ranks that a starter's options set, such as torchrun's
    ``--nproc-per-node``.

    The function ignores values that are not a positive whole number, such as ``gpu``, ``auto``, or ``1:4`` (a
    range of nodes). With torchrun's ``--standalone``, the result contains no numbers.

    Args:
        settings: the names and values of the starter's options, as in the field ``says`` of
            :class:`toolkit.program.command.CommandFacts`.
        nodes: the number of nodes if no option sets the number of nodes. toolkit divides accelerate's
            ``--num_processes``, which counts the ranks of all nodes, by the number of nodes.
    """
    if "PET_STANDALONE" in settings:
        return StarterCounts()
    given = _first(settings, "PET_NNODES", "accelerate_machines", "deepspeed_nodes")
    each = _first(settings, "PET_NPROC_PER_NODE", "deepspeed_gpus")
    if processes := _first(settings, "accelerate_processes"):
        each, left = divmod(processes, given or nodes)
        each = each if not left else None
    return StarterCounts(given, each)


def _first(settings: Mapping[str, str], *names: str) -> int | None:
    """Return the value of the first option in ``names`` that the command sets. Return ``None`` if this value
    is not a positive whole number.
    """
    text = next((settings[name] for name in names if name in settings), "")
    return int(text) if text.isascii() and text.isdigit() and int(text) else None
