"""Rules about an image's MPI that was built to use Slurm's PMI library."""

from toolkit.engine.case import Case
from toolkit.engine.rule import MPI_MODES, TRY_IT, Hit, LaunchStage, rule
from toolkit.engine.traits import bind_target
from toolkit.engine.wireup import sees_allocation
from toolkit.engine.words import mpi_name
from toolkit.folders import is_below
from toolkit.model.mpifacts import ImageMpi

_ON_ITS_OWN_LIBRARY = {"mpich", "mvapich2"}
"""MPI implementations that use only Slurm's PMI-1 library (libpmi) when they are built for Slurm's PMI. Open
MPI is not in this set, because it tries Slurm's libpmi2 before libpmi. libpmi2 works in a container, because
it reaches Slurm's plugin through a file descriptor, whose number is in PMI_FD.
"""
_CONFIGURATION = "/etc/slurm/slurm.conf"


@rule(
    "slurm-pmi-unreachable",
    "The MPI in the image uses Slurm's PMI-1 library, which does not work inside a container",
    severity="error",
    fix=(
        "build the MPI with its own PMI (MPICH: leave out `--with-pmi=slurm`), and use Slurm's pmi2 plugin; "
        "or use an MPI that supports PMIx"
    ),
    instead=MPI_MODES,
    source=(
        "SchedMD/slurm:contribs/pmi/pmi.c, src/api/slurm_pmi.c at slurm-22-05-8-1; measured: all 17 "
        "launches of MPICH 4.0.2 with --with-pmi=slurm fail (cannot stat file /etc/slurm/slurm.conf)"
    ),
    facts=("image.mpi",),
    modes=("srun-pmix", "srun-pmi2", "srun-none", "mpirun-host"),
)
def slurm_pmi_unreachable(case: Case) -> Hit | None:
    """Inside a job, the libpmi.so in the image communicates with srun in Slurm's own protocol. libpmi.so
    needs munge and the cluster's slurm.conf, and the cluster's Slurm must support libpmi.so's protocol.
    Without slurm.conf, libpmi.so waits a minute and then fails. Outside a job, each rank starts as a world of
    size 1.
    """
    case.ask("image.mpi")
    mpi = case.image_facts.mpi
    if mpi is None or not _on_slurms_library(mpi) or not sees_allocation(case):
        return None
    named = ", ".join(name for name in mpi.needs if name.startswith(("libpmi.so", "libslurm")))
    evidence = (*case.cite("image.mpi"), f"image: {mpi.library}: needs {named}")
    if any(is_below(_CONFIGURATION, bind_target(bind)) for bind in case.plan.binds):
        because = f"toolkit's developers have not tested {mpi_name(mpi)} with slurm.conf in the container"
        return Hit(evidence, "unknown", because, fix=f"{TRY_IT}; or build the MPI with its own PMI")
    because = f"{mpi_name(mpi)} uses Slurm's libpmi, which finds no slurm.conf in the container"
    return Hit(evidence, "init-failure", because, stage=LaunchStage.START)


def _on_slurms_library(mpi: ImageMpi) -> bool:
    needed = mpi.needs or ()
    return mpi.implementation in _ON_ITS_OWN_LIBRARY and all(
        any(name.startswith(start) for name in needed) for start in ("libpmi.so", "libslurm")
    )
