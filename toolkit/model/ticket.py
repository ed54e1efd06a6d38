"""The facts of a support ticket, which a user writes into a TOML file."""

import msgspec

from toolkit.model.prediction import Mode


class _Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class TicketCluster(_Section, frozen=True, kw_only=True):
    """The facts about the cluster. A fact that the ticket does not contain is ``None``.

    ``offers`` are the MPI types that ``srun --mpi=list`` prints. ``default`` is the value of Slurm's setting
    MpiDefault. ``pmix`` is the PMIx release of Slurm's plugin. ``runtime`` and ``mpirun`` consist of a name
    and a release: ``apptainer 1.3.4``, ``openmpi 4.1.5``. ``fabric`` is ``infiniband``, ``slingshot``,
    ``omni-path`` or ``ethernet``.
    """

    slurm: str | None = None
    offers: tuple[str, ...] | None = None
    default: str | None = None
    pmix: str | None = None
    runtime: str | None = None
    setuid: bool | None = None
    mpirun: str | None = None
    fabric: str | None = None
    architecture: str | None = None


class TicketImage(_Section, frozen=True, kw_only=True):
    """The facts about the image. ``mpi`` is a name and a release, such as ``openmpi 4.1.4``; the text
    ``none`` means that the image has no MPI.
    """

    mpi: str | None = None
    pmix: str | None = None
    glibc: str | None = None
    architecture: str | None = None


class TicketJob(_Section, frozen=True, kw_only=True):
    """The numbers of nodes and ranks of the job, and its launch mode."""

    nodes: int = 2
    ranks_per_node: int = 1
    mode: Mode | None = None


class Ticket(_Section, frozen=True, kw_only=True):
    """The facts of a support ticket."""

    cluster: TicketCluster = TicketCluster()
    image: TicketImage = TicketImage()
    job: TicketJob = TicketJob()
