"""Format names and versions for sentences."""

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
"""Command → name of the container runtime, if the name is not the capitalized command."""


def plain(version: str | None) -> str:
    """Return the upstream version number without the distribution's suffix; ``?`` for ``None``."""
    return upstream(version) if version else "?"


def family(implementation: str) -> str:
    """Return the name of an MPI implementation as its project writes it, such as ``Open MPI``."""
    return _NAMES.get(implementation, implementation or "an unknown MPI")


def mpi_name(mpi: HostMpi | ImageMpi | None) -> str:
    """Return name and version of an MPI, such as ``Open MPI 4.1.4``."""
    if mpi is None:
        return "no MPI"
    return f"{family(mpi.implementation)} {plain(mpi.version)}"


def runtime_name(name: str) -> str:
    """Return the name of a container runtime as its project writes it, such as ``SingularityCE``."""
    return _RUNTIMES.get(name, name.capitalize())
