"""Shell words with which each rank reads its number from the launcher's variables."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RankWords:
    """Shell words for a rank's number, its number on its node, and the number of its node.

    The words may use ``local_ranks``, a variable of the job script with the number of ranks on each node.
    """

    rank: str
    local_rank: str
    node_rank: str
