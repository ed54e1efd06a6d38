"""JAX: ranks meet at a coordinator, a port of the first rank (``jax.distributed.initialize``); pure.

Without arguments JAX takes the address from ``JAX_COORDINATOR_ADDRESS``, and the count and the number of a
process from the step of Slurm (jax-ml/jax at jax-v0.10.2: jax/_src/distributed.py and
jax/_src/clusters/slurm_cluster.py). JAX reads no variables for these two values; scripts that pass arguments
may.
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


def starter(command: Sequence[str]) -> Starter:  # noqa: ARG001 - the signature of a program
    """Return nothing: the launcher starts the ranks."""
    return ""


def peers(starter: Starter) -> tuple[str, ...]:  # noqa: ARG001
    """Return the address of the coordinator, and the place of the process among all and on its node."""
    return (
        'export JAX_COORDINATOR_ADDRESS="$first:$port"',
        'export JAX_NUM_PROCESSES="$ranks" JAX_PROCESS_ID="$rank"',
        'export LOCAL_RANK="$local_rank" LOCAL_WORLD_SIZE="$local_ranks"',
    )
