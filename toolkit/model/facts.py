"""What was read from a host or an image, and the evidence for each fact; never what was concluded.

A field that is ``None`` could not be read, and ``unknown`` says why under the same dotted name.
``evidence`` maps a dotted field name to the line that it was read from: ``"srun --mpi=list: pmix_v5 pmi2"``.
"""

import msgspec


class _Cited(msgspec.Struct, frozen=True, kw_only=True):
    evidence: dict[str, str] = {}
    unknown: dict[str, str] = {}

    def cite(self, name: str) -> str:
        """Return the line of evidence for a field, or why it is not known."""
        if name in self.evidence:
            return self.evidence[name]
        return f"{name}: not known, {self.unknown.get(name, 'it was not asked')}"


class SlurmFacts(msgspec.Struct, frozen=True, kw_only=True):
    """``mpi_types`` are the names that ``srun --mpi=list`` prints, without alternatives in prose."""

    version: str | None = None
    mpi_types: tuple[str, ...] | None = None
    mpi_default: str | None = None
    nodes: int | None = None
    partitions: tuple[str, ...] | None = None


class HostMpi(msgspec.Struct, frozen=True, kw_only=True):
    """An MPI launcher found on the host; ``leaks`` are variables that it sets for its children."""

    implementation: str
    version: str | None
    launcher: str
    leaks: tuple[str, ...] = ()


class ContainerRuntime(msgspec.Struct, frozen=True, kw_only=True):
    """``setuid`` is ``None`` where the installation could not be examined."""

    name: str
    version: str
    path: str
    setuid: bool | None = None


class HostFacts(_Cited, frozen=True, kw_only=True):
    """One class of equal machines of a cluster, or one machine."""

    schema: str = "toolkit.host/1"
    place: str
    architecture: str | None = None
    kernel: str | None = None
    distribution: str | None = None
    glibc: str | None = None
    slurm: SlurmFacts | None = None
    """``None`` where Slurm's commands are not there."""
    pmix: str | None = None
    """Version of the libpmix that Slurm's plugin (else any program) would load."""
    mpis: tuple[HostMpi, ...] | None = None
    """Launchers on PATH; empty where there is none."""
    runtime: ContainerRuntime | None = None
    user_namespaces: bool | None = None
    gpu_driver: str | None = None
    """NVIDIA driver version; empty text where there is no GPU."""


class ImageMpi(msgspec.Struct, frozen=True, kw_only=True):
    """An MPI library in an image and the launch interfaces that it can use (``pmix``, ``pmi1``, ``pmi2``)."""

    implementation: str
    version: str | None
    library: str
    interfaces: tuple[str, ...] | None
    launcher: str | None = None
    """Path of its mpirun, or ``None`` where there is none."""


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
    pmix: str | None = None
    """Version of the PMIx client library inside."""
    python: str | None = None
    tensorflow: str | None = None
    horovod: str | None = None
    mpi4py: str | None = None
    stack: dict[str, object] | None = None
    """``/opt/toolkit/stack.json`` as it stands, or ``None`` where the image does not describe itself."""
    disagreements: tuple[str, ...] = ()
    """Lines on which ``stack`` and what is really inside differ."""
