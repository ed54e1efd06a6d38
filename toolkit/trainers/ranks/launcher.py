"""What the launcher that started this process says of its place, before any MPI is asked."""

import math
from collections.abc import Mapping

# horovodrun with Gloo, Open MPI's mpirun, PMIx under srun (rank only), MPICH's hydra and srun's pmi2, then
# Slurm itself. It comes last: the variables of Slurm that a rank under mpirun inherits are those of mpirun or
# its daemon.
_RANK = ("HOROVOD_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID")
_SIZE = ("HOROVOD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS")


def started_rank(environment: Mapping[str, str]) -> int:
    """Return which of the started processes this is; 0 where no launcher says."""
    return _first(environment, _RANK, 0)


def started_size(environment: Mapping[str, str]) -> int:
    """Return how many processes the launcher started; 1 where none says."""
    return _first(environment, _SIZE, 1)


def cores(environment: Mapping[str, str], local_size: int, *, allowed: int, node: int) -> int:
    """Return the cores that this rank may use: what Slurm gave it, else its share of what it may run on.

    ``allowed`` is how many cores it is bound to, ``node`` how many there are. A rank that is bound to a part
    of the node shares it with none or with few: as many as there are, if all parts are taken alike.
    """
    given = _first(environment, ("SLURM_CPUS_PER_TASK",), 0)
    if given:
        return min(given, allowed)
    # A job that has only some of a node's cores cannot be bound to others.
    ours = max(allowed, min(node, _first(environment, ("SLURM_CPUS_ON_NODE",), node)))
    sharing = math.ceil(local_size * allowed / ours)
    return max(1, allowed // sharing)


def _first(environment: Mapping[str, str], names: tuple[str, ...], default: int) -> int:
    values = (environment.get(name, "") for name in names)
    return next((int(value) for value in values if value.isdecimal()), default)
