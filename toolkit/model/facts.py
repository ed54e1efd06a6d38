"""What was read from a host or an image, and the evidence for each fact; never what was concluded.

A field that is ``None`` has its reason under the same dotted name, in one of two books:
``absent`` (it was looked for and is not there) or ``unknown`` (it could not be read).
``evidence`` maps a dotted name to the line that it was read from: ``"srun --mpi=list: pmix_v5 pmi2"``.
"""

import msgspec


class _Cited(msgspec.Struct, frozen=True, kw_only=True):
    evidence: dict[str, str] = {}
    absent: dict[str, str] = {}
    unknown: dict[str, str] = {}

    def cite(self, name: str) -> str:
        """Return the line of evidence for a field, or why there is none."""
        for book in (self.evidence, self.absent):
            if name in book:
                return book[name]
        return f"{name}: not known, {self.unknown.get(name, 'it was not asked')}"


class SlurmFacts(msgspec.Struct, frozen=True, kw_only=True):
    """``mpi_types`` are the names that ``srun --mpi=list`` prints, with the versions of PMIx plugins."""

    version: str | None = None
    mpi_types: tuple[str, ...] | None = None
    mpi_default: str | None = None
    nodes: int | None = None
    partitions: tuple[str, ...] | None = None
    settings: dict[str, str] = {}
    """The lines of ``scontrol show config`` that matter to containers and MPI."""


class HostMpi(msgspec.Struct, frozen=True, kw_only=True):
    """An MPI launcher found on the host.

    ``leaks`` are the variables that it sets for its children and that name its own installation;
    ``pmix`` is the version of the PMIx server that it runs. ``None`` where that could not be seen.
    """

    implementation: str
    version: str | None
    launcher: str
    leaks: tuple[str, ...] | None = None
    pmix: str | None = None


class ContainerRuntime(msgspec.Struct, frozen=True, kw_only=True):
    """``setuid`` is ``None`` where the installation could not be examined; ``settings`` are its own."""

    name: str
    version: str
    path: str
    setuid: bool | None = None
    settings: dict[str, str] = {}


class HostFacts(_Cited, frozen=True, kw_only=True):
    """One class of equal machines of a cluster, or one machine."""

    schema: str = "toolkit.host/1"
    place: str
    architecture: str | None = None
    kernel: str | None = None
    distribution: str | None = None
    glibc: str | None = None
    slurm: SlurmFacts | None = None
    """``None`` and ``absent`` where Slurm's commands are not there."""
    pmix: str | None = None
    """Version of the libpmix that Slurm's plugin (else any program) would load."""
    mpis: tuple[HostMpi, ...] | None = None
    """Launchers on PATH, the one that is found first at the front; empty where there is none."""
    runtime: ContainerRuntime | None = None
    user_namespaces: bool | None = None
    squashfuse: str | None = None
    """Path of the program that mounts a SIF without privileges."""
    gpu_driver: str | None = None
    """NVIDIA driver version; ``absent`` where there is no GPU."""
    environment: dict[str, str] = {}
    """Variables that a job inherits and that change how MPI starts in a container; no others.

    Of some the probe tells the name alone; then the value here is empty.
    """


class ImageMpi(msgspec.Struct, frozen=True, kw_only=True):
    """An MPI library in an image and the launch interfaces that it can use (``pmix``, ``pmi1``, ``pmi2``).

    ``markers`` are strings in the library that tell how it behaves (``PMIX_RANK``);
    ``plugins`` says that its components are files of their own, which a host's path can hide.
    """

    implementation: str
    version: str | None
    library: str
    interfaces: tuple[str, ...] | None
    launcher: str | None = None
    """Path of its mpirun, or ``None`` where there is none."""
    plugins: bool | None = None
    markers: tuple[str, ...] = ()


class ImageFacts(_Cited, frozen=True, kw_only=True):
    """What was read from an image without starting it; ``stack`` is what it says of itself."""

    schema: str = "toolkit.image/1"
    path: str
    format: str
    digest: str | None = None
    architecture: str | None = None
    distribution: str | None = None
    glibc: str | None = None
    mpi: ImageMpi | None = None
    """The library that a program in the image really loads."""
    other_mpis: tuple[ImageMpi, ...] = ()
    pmix: str | None = None
    """Version of the PMIx client, a library of its own or built into the MPI."""
    ucx: str | None = None
    libfabric: str | None = None
    """Path of libfabric, which some MPIs open only when they need it."""
    ssh: str | None = None
    """Path of the ssh that a launcher inside would start remote ranks with."""
    python: str | None = None
    tensorflow: str | None = None
    horovod: str | None = None
    mpi4py: str | None = None
    labels: dict[str, str] = {}
    environment: dict[str, str] = {}
    """What the image sets for its programs, as far as it concerns MPI and search paths."""
    stack: dict[str, object] | None = None
    """``/opt/toolkit/stack.json`` as it stands, or ``None`` where the image does not describe itself."""
    disagreements: tuple[str, ...] = ()
    """Lines on which ``stack`` and what is really inside differ."""
