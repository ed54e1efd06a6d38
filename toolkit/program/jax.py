"""JAX: ranks connect to a coordinator on the first rank's node (``jax.distributed.initialize``).

Without arguments, ``initialize`` reads the coordinator's address from ``JAX_COORDINATOR_ADDRESS``. JAX reads
the number of processes and the process index from variables of the Slurm step (jax-ml/jax at jax-v0.10.2:
jax/_src/distributed.py and jax/_src/clusters/slurm_cluster.py). toolkit also sets ``JAX_NUM_PROCESSES`` and
``JAX_PROCESS_ID``. JAX ignores both variables, but a script may pass their values to ``initialize``.
"""

from collections.abc import Sequence

from toolkit.model.facts import ImageFacts
from toolkit.model.prediction import Mode, ProgramName, Starter

NAME: ProgramName = "jax"
TITLE = "JAX"
JOINS = frozenset({"jax"})
MODES: tuple[Mode, ...] = ("jax",)
BY_MPI = False


def in_image(image: ImageFacts) -> bool:
    """Return whether the image has JAX."""
    return image.jax is not None


def starter(command: Sequence[str]) -> Starter:  # noqa: ARG001 - the Program protocol has this argument
    """Return an empty string: the launcher starts the ranks, without a starter such as torchrun."""
    return ""


def peers(starter: Starter) -> tuple[str, ...]:  # noqa: ARG001
    """Return shell lines that set the coordinator's address. They also set the rank's index and the number of
    ranks, both in the job and on the node.
    """
    return (
        'export JAX_COORDINATOR_ADDRESS="$first:$port"',
        'export JAX_NUM_PROCESSES="$ranks" JAX_PROCESS_ID="$rank"',
        'export LOCAL_RANK="$local_rank" LOCAL_WORLD_SIZE="$local_ranks"',
    )
