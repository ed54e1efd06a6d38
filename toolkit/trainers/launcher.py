"""What the launcher that started this process says of its place, before any MPI is asked."""

import os
from collections.abc import Mapping

# Open MPI's mpirun, PMIx under srun (rank only), MPICH's hydra and srun's pmi2, then Slurm itself. mpirun
# comes first: the variables of Slurm that a rank under mpirun inherits are those of mpirun or its daemon.
_RANK = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID")
_SIZE = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS")


def started_rank(environment: Mapping[str, str]) -> int:
    """Return which of the started processes this is; 0 where no launcher says."""
    return _first(environment, _RANK, 0)


def started_size(environment: Mapping[str, str]) -> int:
    """Return how many processes the launcher started; 1 where none says."""
    return _first(environment, _SIZE, 1)


def cores(environment: Mapping[str, str], local_size: int) -> int:
    """Return the cores that this rank may use: what Slurm gave it, else its share of what it may run on."""
    allowed = len(os.sched_getaffinity(0))
    given = environment.get("SLURM_CPUS_PER_TASK", "")
    if given.isdecimal() and int(given) > 0:
        return min(int(given), allowed)
    return max(1, allowed // local_size)


def _first(environment: Mapping[str, str], names: tuple[str, ...], default: int) -> int:
    values = (environment.get(name, "") for name in names)
    return next((int(value) for value in values if value.isdecimal()), default)
