"""Format names and versions of MPIs and container runtimes for messages."""

from toolkit.model.mpifacts import HostMpi, ImageMpi
from toolkit.versions import upstream

_NAMES = {
    "openmpi": "Open MPI",
    "mpich": "MPICH",
    "intelmpi": "Intel MPI",
    "mvapich2": "MVAPICH2",
    "cray": "Cray MPICH",
    "parastation": "ParaStation MPI",
    "spectrum": "IBM Spectrum MPI",
}


_RUNTIMES = {
    "singularity-ce": "SingularityCE",
    "singularity-pro": "SingularityPRO",
    "ch-run": "Charliecloud",
    "ce": "Container Engine",
    "pyxis": "pyxis",
    "enroot": "enroot",
    "podman-hpc": "podman-hpc",
}
"""Map commands to names of container runtimes. For a command that is not in this table, the name is the
command with a capital first letter, such as ``Apptainer``.
"""


def plain(version: str | None) -> str:
    """Return a version without the suffix that a distribution adds, such as ``4.2.2`` for
    ``4.2.2-1+deb12u1``; ``?`` for an unknown version.
    """
    return upstream(version) if version else "?"


def family(implementation: str) -> str:
    """Return the name of an MPI implementation as its project writes it, such as ``Open MPI``."""
    return _NAMES.get(implementation, implementation or "an unknown MPI")


def mpi_name(mpi: HostMpi | ImageMpi | None) -> str:
    """Return the name and version of an MPI, such as ``Open MPI 4.1.4``. For None, return ``no MPI``."""
    if mpi is None:
        return "no MPI"
    return f"{family(mpi.implementation)} {plain(mpi.version)}"


def runtime_name(name: str) -> str:
    """Return the name of a container runtime as its project writes it, such as ``SingularityCE``."""
    return _RUNTIMES.get(name, name.capitalize())
