"""The variables in which a launcher gives each rank its number, as words of shell."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RankWords:
    """Words of shell for the number of a rank, its number on its node, and the number of its node.

    ``local_ranks`` is a variable of the script that uses them: the ranks on each node.
    """

    rank: str
    local_rank: str
    node_rank: str
