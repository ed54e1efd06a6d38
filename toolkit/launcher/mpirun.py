"""``mpirun`` of Open MPI, Hydra (MPICH) and Intel MPI, on the host or in the container."""

from toolkit.launcher.ranks import RankWords
from toolkit.model.facts import HostFacts
from toolkit.model.job import JobSpec
from toolkit.model.prediction import Request
from toolkit.model.site import Site

COMMAND = "mpirun"

RANK = RankWords(
    "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}",
    "${OMPI_COMM_WORLD_LOCAL_RANK:-$MPI_LOCALRANKID}",
    "$((${OMPI_COMM_WORLD_RANK:-$PMI_RANK} / local_ranks))",
    (
        'if [ -n "${SLURM_JOB_ID:-}" ]; then',
        '    export SLURM_PROCID="$rank" SLURM_LOCALID="$local_rank" SLURM_NODEID="$node_rank"',
        '    export SLURM_NTASKS="$ranks" SLURM_NPROCS="$ranks"',
        "fi",
    ),
)
"""Shell words for a rank's numbers, from the variables of Open MPI or Hydra.

In a Slurm job, each rank inherits Slurm's variables from the mpirun daemon on its node. Without the
``export`` lines, all ranks of a node would read the same number from ``SLURM_PROCID``.

Sources: mpirun(1) of Open MPI; for Hydra's ``PMI_RANK`` and ``MPI_LOCALRANKID``, pmodels/mpich:src/pm/hydra.
"""


def words(
    plan_options: tuple[str, ...],
    host: HostFacts,  # noqa: ARG001 - the Launcher protocol has this argument
    request: Request,  # noqa: ARG001
    site: Site | None,  # noqa: ARG001
) -> tuple[str, ...]:
    """Return ``plan_options``, the options in the launch plan, unchanged. toolkit adds no options that bind
    ranks, so mpirun uses its default.
    """
    return plan_options


def counts(spec: JobSpec) -> list[str]:
    """Return the option with the number of ranks; mpirun reads the nodes from the scheduler's variables."""
    return ["-n", str(spec.ranks)]
