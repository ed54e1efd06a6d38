"""Convert a support ticket to facts about a host and an image. The ticket is a TOML file in which a user
describes a cluster, an image and a job.
"""

from typing import Any

from toolkit.errors import BadInput
from toolkit.model.facts import ContainerRuntime, HostFacts, ImageFacts, SlurmFacts
from toolkit.model.mpifacts import HostMpi, ImageMpi
from toolkit.model.prediction import Request
from toolkit.model.ticket import Ticket, TicketCluster, TicketImage
from toolkit.runtime import RUNTIMES
from toolkit.versions import older, parse

_NAMES = {
    "open-mpi": "openmpi",
    "ompi": "openmpi",
    "intel": "intelmpi",
    "impi": "intelmpi",
    "mvapich": "mvapich2",
}
_MPIS = ("openmpi", "mpich", "intelmpi", "mvapich2", "cray", "parastation")
_FABRICS = ("infiniband", "slingshot", "omni-path", "ethernet")


def host_of(ticket: TicketCluster) -> HostFacts:
    """Return the facts that a ticket states about the cluster.

    Raises:
        BadInput: toolkit does not know the ticket's MPI, network or container runtime, or cannot read the
            release of the MPI or container runtime.
    """
    found: dict[str, Any] = {"architecture": ticket.architecture, "pmix": ticket.pmix}
    if ticket.slurm or ticket.offers is not None or ticket.default:
        found["slurm"] = SlurmFacts(
            version=ticket.slurm, mpi_types=ticket.offers, mpi_default=ticket.default, nodes=100
        )
    if ticket.runtime:
        name, version = _runtime(ticket.runtime)
        found["runtime"] = ContainerRuntime(
            name=name, version=version, path=f"/usr/bin/{name}", setuid=ticket.setuid
        )
    if ticket.mpirun:
        name, release = _mpi(ticket.mpirun, "cluster.mpirun")
        found["mpis"] = (
            HostMpi(implementation=name, version=release, launcher="/opt/mpi/bin/mpirun", leaks=()),
        )
    return HostFacts(place="the ticket", **{**found, **_fabric(ticket.fabric)})


def _fabric(name: str | None) -> dict[str, Any]:
    if name is None:
        return {}
    if name not in _FABRICS:
        raise BadInput(f"cluster.fabric: unknown network {name!r}; choices: {', '.join(_FABRICS)}")
    devices = {"infiniband": ("mlx5_0",), "omni-path": ("hfi1_0",)}.get(name, ())
    others = (name,) if name in {"slingshot", "omni-path"} else ()
    return {"infiniband": devices, "fabrics": others}


def image_of(ticket: TicketImage) -> ImageFacts:
    """Return the facts that a ticket states about the image.

    Raises:
        BadInput: toolkit does not know the ticket's MPI, or cannot read the release of the MPI.
    """
    found: dict[str, Any] = {
        "architecture": ticket.architecture,
        "pmix": ticket.pmix,
        "glibc": ticket.glibc,
    }
    if ticket.mpi is None:
        unknown = {"mpi": "the ticket does not say which MPI is in the image"}
        return ImageFacts(path="image.sif", format="", unknown=unknown, **found)
    if ticket.mpi == "none":
        return ImageFacts(
            path="image.sif", format="", absent={"mpi": "the ticket says that the image has no MPI"}, **found
        )
    name, release = _mpi(ticket.mpi, "image.mpi")
    mpi = named_mpi(name, release)
    return ImageFacts(path="image.sif", format="", mpi=mpi, mpirun="/usr/bin/mpirun", **found)


def named_mpi(name: str, release: str) -> ImageMpi:
    """Return the facts about an image's MPI. ``name`` is the implementation, such as ``openmpi``. For all
    facts except implementation and release, toolkit assumes common values.
    """
    is_open = name == "openmpi"
    device = (
        None if is_open else ("ch3:nemesis" if older(release, "3.4") and name != "intelmpi" else "ch4:ofi")
    )
    return ImageMpi(
        implementation=name,
        version=release,
        library="/usr/lib/libmpi.so",
        interfaces=None,
        launcher="/usr/bin/mpirun",
        plugins=False,
        soname="libmpi.so.40" if is_open else "libmpi.so.12",
        device=device,
        own_shm=None if is_open else True,
        components={"pml": ("ob1",), "btl": ("self", "tcp", "vader")} if is_open else {},
    )


def _runtime(text: str) -> tuple[str, str]:
    name, _, version = text.strip().partition(" ")
    known = tuple(name for kind in RUNTIMES for name in kind.NAMES)
    if name not in known or (version and parse(version) is None):
        raise BadInput(
            f"cluster.runtime: {text!r} is not the name and release of a container runtime",
            fix=f"write name and release, as in: apptainer 1.3.4; names: {', '.join(known)}",
        )
    return name, version


def _mpi(text: str, key: str) -> tuple[str, str]:
    word, _, release = text.strip().rpartition(" ")
    name = _NAMES.get(word.lower().replace(" ", ""), word.lower().replace(" ", ""))
    if name not in _MPIS or parse(release) is None:
        raise BadInput(
            f"{key}: {text!r} is not the name and release of an MPI library",
            fix=f"write name and release, as in: openmpi 4.1.5; names: {', '.join(_MPIS)}",
        )
    return name, release


def request_of(ticket: Ticket) -> Request:
    """Return the job in a ticket: its numbers of nodes and ranks, and its launch mode."""
    job = ticket.job
    return Request(nodes=job.nodes, ranks_per_node=job.ranks_per_node, mode=job.mode)
