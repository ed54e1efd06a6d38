"""``mpirun`` of Open MPI, Hydra (MPICH) and Intel MPI, on the host or in the container; pure."""

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
)
"""mpirun(1) of Open MPI; Hydra sets ``PMI_RANK`` and ``MPI_LOCALRANKID`` (pmodels/mpich:src/pm/hydra)."""


def words(
    planned: tuple[str, ...],
    host: HostFacts,  # noqa: ARG001 - the signature of a launcher
    request: Request,  # noqa: ARG001
    site: Site | None,  # noqa: ARG001
) -> tuple[str, ...]:
    """Return the planned options: their words for binding differ, and the defaults bind ranks to cores."""
    return planned


def counts(spec: JobSpec) -> list[str]:
    """Return the number of ranks; the nodes come from the job."""
    return ["-n", str(spec.ranks)]
