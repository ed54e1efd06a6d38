"""``mpiexec`` of PALS, HPE's Parallel Application Launch Service on Cray EX.

toolkit's developers have not run PALS. The options follow the ALCF user guides for Polaris ("Running Jobs"
and "Containers on Polaris") and NCAR/mpibind. Ranks connect to PALS through ``PMI_*`` variables and the
folder ``/var/run/palsd``; the site profile mounts this folder into the container.
"""

from toolkit.launcher.ranks import RankWords
from toolkit.model.facts import HostFacts
from toolkit.model.job import JobSpec
from toolkit.model.prediction import Request
from toolkit.model.site import Site

NAME, COMMAND = "pals", "mpiexec"

RANK = RankWords("$PALS_RANKID", "$PALS_LOCAL_RANKID", "$PALS_NODEID")
"""Sources for the variables: mpiexec(1) of PALS, and the ALCF user guide for Polaris, "Running Jobs"."""


def words(
    plan_options: tuple[str, ...],  # noqa: ARG001 - PALS does not accept options of srun or mpirun
    host: HostFacts,  # noqa: ARG001
    request: Request,
    site: Site | None,
) -> tuple[str, ...]:
    """Return the options that bind each rank to hardware threads, and the site profile's launcher options."""
    cores = request.cpus_per_rank
    depth = cores and cores * (site.threads() if site else 1)
    bound = ("--depth", str(depth), "--cpu-bind", "depth") if depth else ()
    return (*bound, *(site.launch.srun if site else ()))


def counts(spec: JobSpec) -> list[str]:
    """Return the options that set the number of ranks and the number of ranks on each node."""
    return ["-n", str(spec.ranks), "--ppn", str(spec.ranks_per_node)]
