"""Read this process's rank and size from the launcher's variables, before MPI starts."""

import math
from collections.abc import Mapping

# In order: horovodrun with Gloo, Open MPI's mpirun, PMIx under srun (rank only), MPICH's hydra and srun's
# pmi2, Slurm. Slurm is last: a rank under mpirun inherits Slurm's variables from mpirun or its daemon.
_RANK = ("HOROVOD_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID")
_SIZE = ("HOROVOD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS")


def started_rank(environment: Mapping[str, str]) -> int:
    """Return the number of this process among the started processes; 0 if no launcher says it."""
    return first_number(environment, _RANK, 0)


def started_size(environment: Mapping[str, str]) -> int:
    """Return how many processes the launcher started; 1 without such a report."""
    return first_number(environment, _SIZE, 1)


def cores(environment: Mapping[str, str], local_size: int, *, allowed: int, node: int) -> int:
    """Return the cores of this rank: the cores that Slurm gave it, or its share of the permitted cores.

    ``allowed`` is how many cores it is bound to, ``node`` how many the node has. Ranks bound to a part of the
    node are assumed to share it evenly.
    """
    given = first_number(environment, ("SLURM_CPUS_PER_TASK",), 0)
    if given:
        return min(given, allowed)
    # A job with only some of a node's cores cannot be bound to the others.
    ours = max(allowed, min(node, first_number(environment, ("SLURM_CPUS_ON_NODE",), node)))
    sharing = math.ceil(local_size * allowed / ours)
    return max(1, allowed // sharing)


def first_number(environment: Mapping[str, str], names: tuple[str, ...], default: int) -> int:
    """Return the number in the first of these variables that has a number."""
    values = (environment.get(name, "") for name in names)
    return next((int(value) for value in values if value.isdecimal()), default)
