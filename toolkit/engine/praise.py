"""Say in one line why a launch works, from the same facts that the rules found nothing wrong with."""

from toolkit.engine.case import Case
from toolkit.engine.words import mpi_name, plain


def praise(case: Case) -> str:
    """Return the reason for ``ok``, for a person."""
    mpi = mpi_name(case.image.mpi)
    if case.request.alone and case.mode != "mpirun-container":
        return f"one rank, which needs no other; the image has {mpi}"
    match case.mode:
        case "srun-pmix":
            client, server = plain(case.image.pmix), plain(case.host.pmix)
            return f"{mpi} in the image speaks PMIx {client}, Slurm serves PMIx {server}"
        case "srun-pmi2":
            return f"{mpi} in the image speaks PMI, which Slurm's pmi2 plugin answers"
        case "mpirun-host":
            host = case.host.mpis[0] if case.host.mpis else None
            name = mpi_name(host)
            return f"the host's {name} starts {mpi} of the image: same family, and their PMIx get on"
        case _:
            return f"{mpi} starts its own ranks on one node"
