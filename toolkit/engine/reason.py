"""Explain in one line why a launch works."""

import posixpath

from toolkit.engine.case import Case
from toolkit.engine.planning.proposal import AGENT
from toolkit.engine.traits import HYDRA, host_launcher
from toolkit.engine.words import mpi_name, plain
from toolkit.program import program_of_name


def explain_ok(case: Case) -> str:
    """Return the reason for the outcome ``ok``, as a sentence for the user."""
    return _by_mpi(case) if program_of_name(case.plan.program).BY_MPI else _without_mpi(case)


def _by_mpi(case: Case) -> str:
    mpi = mpi_name(case.image_facts.mpi)
    if case.request.has_one_rank and case.mode != "mpirun-container":
        return f"one rank needs no launcher; the image has {mpi}"
    match case.mode:
        case "srun-pmix":
            client, server = plain(case.image_facts.pmix), plain(case.host_facts.pmix)
            return f"{mpi} in the image uses PMIx {client}, compatible with Slurm's PMIx {server}"
        case "srun-pmi2":
            return f"{mpi} in the image supports PMI, which Slurm's pmi2 plugin offers"
        case "mpirun-host":
            return _by_launcher(case, mpi)
        case "srun-none":
            return f"no rule predicts a failure for {mpi}"
        case "bind":
            return f"{_loaded_mpi(case)}; {posixpath.basename(case.plan.launcher[0])} supports this MPI"
        case "gloo":
            return "Gloo in Horovod connects the ranks over TCP, without MPI"
        case _ if AGENT in case.plan.launcher:
            return (
                f"mpirun of {mpi} starts the ranks; the job script uses srun to start mpirun's daemons on "
                "the other nodes"
            )
        case _:
            return f"mpirun of {mpi} starts the ranks on one node"


def _by_launcher(case: Case, mpi: str) -> str:
    host = host_launcher(case.host_facts)
    if host and host.implementation not in {"openmpi", *HYDRA}:
        return f"the host's {mpi_name(host)} launches the same MPI in the image"
    if host and host.implementation != "openmpi":
        return f"the host's {mpi_name(host)} launches {mpi} in the image; both support PMI"
    return f"the host's {mpi_name(host)} launches {mpi} in the image; their PMIx versions are compatible"


def _without_mpi(case: Case) -> str:
    """Return the reason why a program without MPI works, as a sentence."""
    title = program_of_name(case.plan.program).TITLE
    if not case.plan.wrapper:
        return f"{title} needs neither MPI nor PMI"
    if case.plan.starter:
        return (
            f"srun starts {case.plan.starter} on each node; the job script gives {case.plan.starter} the "
            f"list of nodes"
        )
    return (
        f"the job script gives each rank of {title} its rank number and the addresses of its peers, without "
        f"MPI"
    )


def _loaded_mpi(case: Case) -> str:
    """Return a clause that names the MPI that programs load in the launch mode ``bind``."""
    mpi = mpi_name(case.image_facts.mpi)
    if case.image_facts is case.original_facts:
        return f"programs load the image's own {mpi}"
    return f"programs load {mpi} of the host instead of {mpi_name(case.original_facts.mpi)}"
