"""Read ``mpi.toml``: how MPI libraries and launchers behave."""

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
    """A row of ``mpi.toml`` about some releases of an MPI implementation; an empty ``versions`` means all
    releases.
    """

    implementation: str
    versions: str = ""

    def of(self, mpi: ImageMpi | HostMpi) -> bool:
        """Return whether this row is about the MPI library ``mpi``."""
        return self.implementation == mpi.implementation and within(mpi.version or "", self.versions)


class Mismatch(MpiRow, frozen=True, kw_only=True):
    """The outcome of a launch if the MPI library does not support the interface that the launcher offers.

    ``ssh`` is true if the image has a program that starts daemons on other nodes. ``munge`` is true if the
    PMIx server offers authentication with munge. ``mpiexec`` is true if the image has a launcher on PATH. If
    ``speaks`` is given, the row applies only to MPIs that support this launch interface. ``amd_unthreaded``
    is true if the processor is from AMD and has one thread per core. If ``first`` is true, the rank fails
    before most MPI settings take effect; only settings with ``first`` in ``settings.toml`` take effect
    earlier. ``allocation`` is true if a rank detects a Slurm allocation. ``by_chance`` lists the other
    outcomes that repetitions of the same launch had.
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
    """The outcome of a launch in which the rank's MPI has another release than the launcher's daemons, which
    start the rank.

    ``launcher`` has version bounds for the daemons.
    """

    launcher: str
    outcome: Outcome
    because: str


class Inside(MpiRow, frozen=True, kw_only=True):
    """The outcome of a launch whose launcher (mpirun) runs inside the container.

    ``amd_unthreaded`` is true if the processor is from AMD and its cores have one thread each. ``without``
    and ``empty`` are names of variables. A row with ``without`` applies only if neither image nor launch sets
    the variable ``without``. A row with ``empty`` applies only if the variable ``empty`` has an empty value.
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
    """Options for a launcher inside the container.

    The table ``without_ssh`` has the options with which the launcher starts ranks on its own node although
    the image has no ssh. With the options in the table ``agent``, the launcher itself starts the daemon of
    each node, through the program ``toolkit-agent`` instead of ssh. The options also keep the daemons in the
    foreground, because Slurm stops processes that leave their job step.
    """

    words: tuple[str, ...]


NETMOD = "MPIR_CVAR_CH4_NETMOD"
"""The variable that selects an MPICH network module other than the first, which is the default."""


def netmods(mpi: ImageMpi) -> list[str]:
    """Return the network modules of an MPICH; the first module is the default."""
    return [name for name in (mpi.device or "").partition(":")[2].split(",") if name]


class Defect(MpiRow, frozen=True, kw_only=True):
    """A defect of certain MPI releases. A variable or a container option in the plan (``lifted_by``) may
    avoid the defect.

    ``lift`` is a value that avoids the defect on a host without a fast network; on other hosts, the value
    would disable the fast network. In ``lift``, toolkit replaces ``{interface}`` with the name of the host's
    only network interface. ``by_chance`` lists the other outcomes that repetitions of the same launch had. A
    defect with the outcome ``ok`` stops only a few launches, so toolkit only warns of the defect. ``under``
    has version bounds for the host's Open MPI that starts the ranks. ``batch`` is true if the launcher runs
    on a node that also runs its ranks. If ``launched_by`` is empty, the defect occurs under srun and under
    every mpirun. Otherwise, under an mpirun of the host, the defect occurs only if ``launched_by`` lists the
    host's MPI (``mpich <5``). ``netmod`` is the network module that MPICH uses by default.
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
        """Return whether ``lift`` avoids the defect for this MPI; if ``lift`` is a network module, the MPI
        must contain it.
        """
        return bool(self.lift) and (self.lifted_by != NETMOD or self.lift in netmods(mpi))

    def holds_under(self, mpi: HostMpi | None) -> bool:
        """Return whether the defect occurs if the mpirun of the host's MPI ``mpi`` starts the ranks. True if
        the defect occurs under every launcher.
        """
        rows = (entry.partition(" ") for entry in self.launched_by)
        named = (
            mpi and mpi.implementation == name and within(mpi.version or "", bounds)
            for name, _, bounds in rows
        )
        return not self.launched_by or any(named)


class BatchLauncher(Row, frozen=True, kw_only=True):
    """A launcher of a batch system other than Slurm, and the outcome if it starts ranks of an image's MPI.

    An empty ``implementation`` means every MPI. ``versions`` has version bounds for the MPI. toolkit uses the
    first matching row; the last row about a launcher matches every MPI.
    """

    program: str
    outcome: Outcome
    because: str
    implementation: tuple[str, ...] = ()
    versions: str = ""

    def of(self, mpi: ImageMpi | None) -> bool:
        """Return whether this row is about the MPI library ``mpi`` or about every MPI library."""
        if not self.implementation:
            return True
        return (
            mpi is not None
            and mpi.implementation in self.implementation
            and within(mpi.version or "", self.versions)
        )


class OutsideStep(Row, frozen=True, kw_only=True):
    """The variable from which ranks detect that they are in a Slurm job step.

    ``told_by_slurm`` has version bounds. Slurm releases within these bounds also set ``variable`` in batch
    scripts.
    """

    variable: str
    told_by_slurm: str


class Sharing(MpiRow, frozen=True, kw_only=True):
    """The outcome of a launch that restricts how the ranks of a node share memory.

    ``device`` is a prefix of MPICH's device. The row applies only to images whose facts match ``own_shm`` and
    whose UCX version is within ``ucx``.
    """

    outcome: Outcome
    device: str = ""
    own_shm: bool | None = None
    ucx: str = ""


class SharedMemory(Sharing, frozen=True, kw_only=True):
    """The outcome of a launch with less than ``least`` bytes of shared memory. With ``enough`` bytes or more,
    the MPI works.

    ``least`` and ``enough`` apply to two ranks on a node. Sizes between ``least`` and ``enough`` were not
    measured.
    """

    least: int
    enough: int


class Apart(MpiRow, frozen=True, kw_only=True):
    """The outcome of a launch in which each rank of a node has a separate /dev/shm."""

    outcome: Outcome
    because: str


class Namespaces(Sharing, frozen=True, kw_only=True):
    """The outcome of a launch in which the ranks of a node are in separate user namespaces.

    If ``by`` is ``ucx``, the row is only about messages through UCX, because the MPI also has other
    transports. ``several_nodes`` is the outcome on several nodes, in place of ``outcome``. ``by_chance`` has
    the other outcomes on several nodes, and ``by_chance_on_one`` the other outcomes on one node.
    """

    because: str
    by: Literal["ucx", ""] = ""
    ptrace: bool | None = None
    several_nodes: Outcome | None = None
    by_chance: tuple[Outcome, ...] = ()
    by_chance_on_one: tuple[Outcome, ...] = ()
    lifted_by: str = ""


class Libfabric(MpiRow, frozen=True, kw_only=True):
    """The outcome of a launch in which the MPI library does not find libfabric.

    ``alone`` is true if the rank also finds no PMI server, and therefore starts as a world of size 1.
    """

    outcome: Outcome
    alone: bool
    nodes: Count = "any"


class Variables(Row, frozen=True, kw_only=True):
    """Names of variables that configure the host's MPI."""

    paths: tuple[str, ...]
    hide_plugins: tuple[str, ...]
    hide_pmix_plugins: tuple[str, ...]
    harmful_prefixes: tuple[str, ...]
    harmful: tuple[str, ...]
    fabric: tuple[str, ...]
    """Patterns of variables that toolkit does not remove, because they are parameters of a network driver."""
    mounted: tuple[str, ...]
    """Further patterns of variables that toolkit does not remove if the host's MPI replaces the image's MPI.
    """
    container_options: tuple[str, ...]


class StandardAbi(MpiRow, frozen=True, kw_only=True):
    """MPI releases that also provide MPI's standard ABI (binary interface), in the library with the soname
    ``library``.
    """

    library: str


class ReleaseRows(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """MPI releases with a property that several rules use. The name of each field describes the property. For
    example, the mpirun of the releases in ``orte`` uses ORTE, the launcher of Open MPI before 5.
    """

    orte: MpiRow
    prrte: MpiRow
    own_messages: MpiRow
    ignores_slurm: MpiRow
    two_libraries: MpiRow
    pmi_first: MpiRow
    waits_for_failed_rank: MpiRow


class MpiKnowledge(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of ``mpi.toml``."""

    standard_abi: tuple[StandardAbi, ...]
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
        """Return the rows about the launcher ``program``; empty for srun and for launchers of
        MPI libraries.
        """
        return tuple(row for row in self.starter if row.program == program)


@cache
def mpi() -> MpiKnowledge:
    """Return the content of ``mpi.toml``."""
    return read("mpi", MpiKnowledge)


def mpi_of_file(implementation: str, path: str) -> str | None:
    """Return the release of an Open MPI or MPICH from the real file name of its library; ``None`` if the name
    does not identify the release.
    """
    known = mpi().library_file.get(implementation, {})
    return known.get(without_hash(Path(path).name))


def bundled_pmix(open_mpi: str) -> str | None:
    """Return the release of the PMIx that an Open MPI release contains; ``None`` if ``mpi.toml`` lacks the
    release.
    """
    return next((p for v, p in mpi().bundled_pmix.items() if within(open_mpi, f"=={v}")), None)


def counts(wanted: Count, number: int) -> bool:
    """Return whether a number of nodes or ranks satisfies ``wanted`` in a row of ``mpi.toml``: ``one``,
    ``several`` or ``any``.
    """
    return wanted == "any" or (wanted == "one") == (number == 1)
