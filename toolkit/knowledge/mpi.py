"""``mpi.toml``: how MPI libraries and launchers behave."""

from functools import cache
from pathlib import Path
from typing import Literal

import msgspec

from toolkit.knowledge.reading import Row, read
from toolkit.model.mpifacts import HostMpi, ImageMpi
from toolkit.model.prediction import Mode, Outcome
from toolkit.sonames import without_hash
from toolkit.versions import within

Count = Literal["one", "several", "any"]
Sees = Literal["pmix", "pmi2", "none"]


class MpiRow(Row, frozen=True, kw_only=True):
    """Knowledge about some releases of an implementation, or about all if no releases are named."""

    implementation: str
    versions: str = ""

    def of(self, mpi: ImageMpi | HostMpi) -> bool:
        """Return whether this row is about this library."""
        return self.implementation == mpi.implementation and within(mpi.version or "", self.versions)


class Mismatch(MpiRow, frozen=True, kw_only=True):
    """The outcome for a library that does not speak the interface which the launcher offers.

    ``ssh`` says whether the image has a program that starts daemons on other nodes, ``munge`` whether the
    PMIx server offers that authentication, ``mpiexec`` whether PATH finds a launcher in the image. ``speaks``
    is an interface that the MPI was built for; for ``amd_unthreaded`` see :class:`Inside`. ``first``: the
    rank fails before it reads settings of the MPI, except settings that are ``first`` themselves.
    ``allocation`` says whether a rank sees a Slurm allocation. ``by_chance`` are outcomes of other tries.
    """

    outcome: Outcome
    because: str
    by_chance: tuple[Outcome, ...] = ()
    allocation: bool | None = None
    sees: Sees | Literal[""] = ""
    step: bool | None = None
    marker: str = ""
    ssh: bool | None = None
    munge: bool | None = None
    mpiexec: bool | None = None
    speaks: Literal["pmix", ""] = ""
    amd_unthreaded: bool | None = None
    first: bool = False


class Daemons(MpiRow, frozen=True, kw_only=True):
    """The outcome for a library that daemons of another release start; ``launcher`` bounds their release."""

    launcher: str
    outcome: Outcome
    because: str


class Inside(MpiRow, frozen=True, kw_only=True):
    """The outcome for a launcher inside the container within an allocation.

    ``amd_unthreaded`` says that the processor is AMD's, and that its cores have one thread each; ``without``
    names a variable that the image does not set, ``empty`` a variable that is set to the empty text.
    """

    outcome: Outcome
    because: str
    nodes: Count
    ssh: bool | None = None
    allocation: bool | None = None
    forked: bool | None = None
    agent: bool | None = None
    isolated: bool | None = None
    amd_unthreaded: bool | None = None
    without: str = ""
    empty: str = ""


class LauncherWords(MpiRow, frozen=True, kw_only=True):
    """Arguments for a launcher inside the container.

    ``without_ssh``: the launcher starts ranks on its node if the image has no ssh. ``agent``: the launcher
    calls ``toolkit-agent`` instead of ssh, and starts all daemons itself. A daemon must stay in the
    foreground: when the step ends, Slurm stops processes that left it.
    """

    words: tuple[str, ...]


NETMOD = "MPIR_CVAR_CH4_NETMOD"
"""The variable with which an MPICH chooses one of its network modules instead of the first."""


def netmods(mpi: ImageMpi) -> list[str]:
    """Return the network modules of an MPICH, of which the first is its default."""
    return [name for name in (mpi.device or "").partition(":")[2].split(",") if name]


class Defect(MpiRow, frozen=True, kw_only=True):
    """A defect of single releases; a variable or an option of the container in the plan may avoid it.

    ``lift`` is a value that avoids the defect without a fast fabric; the value would disable a fast fabric.
    ``{interface}`` in it means the host's network interface, if it has only one. ``by_chance`` are outcomes
    of other tries. With the outcome ``ok`` the row is a warning about a fault that most launches do not
    meet. ``under`` bounds the releases of the host's Open MPI that starts the ranks; ``batch`` says that the
    launcher is on a node of its ranks. ``launched_by`` lists the MPI of the host's mpirun under which the
    defect was measured ("mpich <5"); empty if srun and mpirun behave alike. ``netmod`` is the network module
    that MPICH takes by default.
    """

    id: str
    outcome: Outcome
    by_chance: tuple[Outcome, ...] = ()
    title: str
    fix: str
    nodes: Count = "any"
    ranks_per_node: Count = "any"
    served_by: Literal["pmi", "pmix", ""] = ""
    modes: tuple[Mode, ...] = ()
    lifted_by: str = ""
    lift: str = ""
    under: str = ""
    batch: bool | None = None
    launched_by: tuple[str, ...] = ()
    netmod: str = ""

    def lifts(self, mpi: ImageMpi) -> bool:
        """Return whether this MPI can follow ``lift``: it has the named network module."""
        return bool(self.lift) and (self.lifted_by != NETMOD or self.lift in netmods(mpi))

    def holds_under(self, mpi: HostMpi | None) -> bool:
        """Return whether it was measured under this MPI of the host, or under every launcher."""
        rows = (entry.partition(" ") for entry in self.launched_by)
        named = (
            mpi and mpi.implementation == name and within(mpi.version or "", bounds)
            for name, _, bounds in rows
        )
        return not self.launched_by or any(named)


class BatchLauncher(Row, frozen=True, kw_only=True):
    """A launcher of a batch system other than srun, and how ranks of an image's MPI end under it.

    ``implementation`` is empty for every MPI; ``versions`` bounds its releases. The first row that fits
    counts, and the last row about a launcher is about every MPI.
    """

    program: str
    outcome: Outcome
    because: str
    implementation: tuple[str, ...] = ()
    versions: str = ""

    def of(self, mpi: ImageMpi | None) -> bool:
        """Return whether this row is about a library, or about every library."""
        if not self.implementation:
            return True
        return (
            mpi is not None
            and mpi.implementation in self.implementation
            and within(mpi.version or "", self.versions)
        )


class OutsideStep(Row, frozen=True, kw_only=True):
    """Launchers that start ranks outside any step of Slurm, and libraries that need a step.

    ``told_by_slurm`` bounds the releases of Slurm whose batch scripts have the variable.
    """

    variable: str
    told_by_slurm: str


class Sharing(MpiRow, frozen=True, kw_only=True):
    """A row that applies to one way of sharing memory between the ranks of a node.

    ``device`` is a prefix of MPICH's device, ``own_shm`` and ``ucx`` (bounds) are facts of the image.
    """

    outcome: Outcome
    device: str = ""
    own_shm: bool | None = None
    ucx: str = ""


class SharedMemory(Sharing, frozen=True, kw_only=True):
    """The outcome with less shared memory than ``least`` bytes; the MPI works with ``enough`` bytes.

    ``least`` and ``enough`` are for two ranks on a node; sizes between them were not measured.
    """

    least: int
    enough: int


class Apart(MpiRow, frozen=True, kw_only=True):
    """The outcome for ranks of one node that each have their own /dev/shm."""

    outcome: Outcome
    because: str


class Namespaces(Sharing, frozen=True, kw_only=True):
    """The outcome if the ranks of one node are in separate user namespaces.

    ``by`` limits the row to messages through UCX, in an MPI that also has other ways.
    """

    because: str
    by: Literal["ucx", ""] = ""
    ptrace: bool | None = None
    several_nodes: Outcome | None = None
    by_chance: tuple[Outcome, ...] = ()
    lifted_by: str = ""


class Libfabric(MpiRow, frozen=True, kw_only=True):
    """The outcome for a library that opens libfabric and does not find it; ``alone``: it also finds no
    launcher.
    """

    outcome: Outcome
    alone: bool
    nodes: Count = "any"


class Variables(Row, frozen=True, kw_only=True):
    """Names of variables that belong to the host's own MPI."""

    paths: tuple[str, ...]
    hide_plugins: tuple[str, ...]
    hide_pmix_plugins: tuple[str, ...]
    harmful_prefixes: tuple[str, ...]
    harmful: tuple[str, ...]
    fabric: tuple[str, ...]
    """Patterns of variables that a job inherits nevertheless: parameters of one network driver."""
    mounted: tuple[str, ...]
    """The same for launches in which the host's MPI replaces the MPI of the image."""
    container_options: tuple[str, ...]


class ReleaseRows(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Releases with properties that several rules ask for. Each field is named after the property."""

    orte: MpiRow
    prrte: MpiRow
    own_messages: MpiRow
    ignores_slurm: MpiRow
    two_libraries: MpiRow
    pmi_first: MpiRow
    waits_for_failed_rank: MpiRow


class MpiKnowledge(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``mpi.toml``."""

    mismatch: tuple[Mismatch, ...]
    release: ReleaseRows
    daemons: tuple[Daemons, ...]
    inside: tuple[Inside, ...]
    without_ssh: tuple[LauncherWords, ...]
    agent: tuple[LauncherWords, ...]
    starter: tuple[BatchLauncher, ...]
    outside_step: OutsideStep
    defect: tuple[Defect, ...]
    shared_memory: tuple[SharedMemory, ...]
    apart: tuple[Apart, ...]
    namespaces: tuple[Namespaces, ...]
    libfabric: tuple[Libfabric, ...]
    bundled_pmix: dict[str, str]
    library_file: dict[str, dict[str, str]]
    variables: Variables

    def starters(self, program: str) -> tuple[BatchLauncher, ...]:
        """Return the rows about a launcher; empty for srun, and for the launchers of MPI libraries."""
        return tuple(row for row in self.starter if row.program == program)


@cache
def mpi() -> MpiKnowledge:
    """Return the table about MPI libraries and launchers."""
    return read("mpi", MpiKnowledge)


def mpi_of_file(implementation: str, path: str) -> str | None:
    """Return the release of an Open MPI or MPICH from the real file name of its library."""
    known = mpi().library_file.get(implementation, {})
    return known.get(without_hash(Path(path).name))


def bundled_pmix(open_mpi: str) -> str | None:
    """Return the release of the PMIx inside an Open MPI."""
    return next((p for v, p in mpi().bundled_pmix.items() if within(open_mpi, f"=={v}")), None)


def counts(wanted: Count, number: int) -> bool:
    """Return whether a number of nodes or ranks is ``one`` or ``several``, as a row requires."""
    return wanted == "any" or (wanted == "one") == (number == 1)
