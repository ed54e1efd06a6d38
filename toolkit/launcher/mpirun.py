"""``mpirun`` of Open MPI, Hydra (MPICH) and Intel MPI, on the host or in the container; pure."""

from toolkit.model.facts import HostFacts
from toolkit.model.job import JobSpec
from toolkit.model.prediction import Request
from toolkit.model.site import Site

COMMAND = "mpirun"


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
