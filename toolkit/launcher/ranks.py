"""Shell words from which a rank reads its numbers: the launcher's variables, such as ``$SLURM_PROCID``."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RankWords:
    """Shell words for a rank's number in the job, the rank's number on its node, and the node's number.

    The words may use ``local_ranks``, a variable of the job script with the number of ranks on each node.
    ``lines`` are shell lines that each rank runs before the user's command. The lines may use the variables
    ``rank``, ``local_rank`` and ``node_rank``.
    """

    rank: str
    local_rank: str
    node_rank: str
    lines: tuple[str, ...] = ()
