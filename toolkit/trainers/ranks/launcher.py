"""Read this process's rank and the number of ranks from the launcher's variables, before MPI starts."""

import math
from collections.abc import Mapping

# The first variable that contains a number applies. The order is:
# horovodrun with Gloo, Open MPI's mpirun, PMIx under srun (only the rank), PMI, Slurm.
# MPICH's Hydra and srun's pmi2 set the variables of PMI.
# Under mpirun, Slurm's variables describe mpirun or its daemon, so Slurm's variables are last.
_RANK = ("HOROVOD_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID")
_SIZE = ("HOROVOD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS")


def started_rank(environment: Mapping[str, str]) -> int:
    """Return this process's rank from the launcher's variables, or 0 if no launcher set a rank."""
    return first_number(environment, _RANK, 0)


def started_size(environment: Mapping[str, str]) -> int:
    """Return the number of processes that the launcher started, or 1 if no launcher set this number."""
    return first_number(environment, _SIZE, 1)


def cores(environment: Mapping[str, str], local_size: int, *, allowed_cores: int, node_cores: int) -> int:
    """Return the number of CPU cores for this rank: Slurm's number of cores per task (at most
    ``allowed_cores``) or, if Slurm did not set this number, the rank's share of the allowed cores.

    ``allowed_cores`` is the number of cores on which the kernel lets this rank run. ``node_cores`` is the
    number of cores of the node, and ``local_size`` is the number of ranks on the node. If the
    kernel lets several ranks run on the same cores, the function divides these cores among the ranks. It
    assumes that the ranks are spread evenly over the cores that the job has on the node.
    """
    given = first_number(environment, ("SLURM_CPUS_PER_TASK",), 0)
    if given:
        return min(given, allowed_cores)
    # ``ours`` is the number of cores that the job has on this node, which may be fewer than all cores.
    ours = max(allowed_cores, min(node_cores, first_number(environment, ("SLURM_CPUS_ON_NODE",), node_cores)))
    sharing = math.ceil(local_size * allowed_cores / ours)
    return max(1, allowed_cores // sharing)


def first_number(environment: Mapping[str, str], names: tuple[str, ...], default: int) -> int:
    """Return the value of the first variable in ``names`` whose value is a number. Return ``default`` if no
    variable has such a value.
    """
    values = (environment.get(name, "") for name in names)
    return next((int(value) for value in values if value.isdecimal()), default)
