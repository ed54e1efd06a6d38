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
    """A row of ``mpi.toml`` about releases of an MPI implementation. If ``versions`` is empty, the row is
    about all releases.
    """

    implementation: str
    versions: str = ""

    def of(self, mpi: ImageMpi | HostMpi) -> bool:
        """Return whether this row is about the MPI library ``mpi``."""
        return self.implementation == mpi.implementation and within(mpi.version or "", self.versions)


class Mismatch(MpiRow, frozen=True, kw_only=True):
    """The outcome of a launch if the MPI library does not support the interface that the launcher offers.

    The row applies only to launches that meet all conditions in the following fields. The values ``None`` and
    ``""`` set no condition. ``sees``: the interface that the launcher offers. ``step``: whether the rank is
    in a Slurm step. ``allocation``: whether the rank detects a Slurm allocation. ``marker``: a string in the
    MPI library. ``ssh``: whether the image has ssh, with which a launcher starts daemons on other nodes.
    ``mpiexec``: whether the image has a launcher on PATH. ``munge``: whether the PMIx server offers
    authentication with munge. ``speaks``: a launch interface that the MPI supports. ``amd_unthreaded``:
    whether the processor is from AMD and has one thread per core.

    If ``first`` is true, the rank fails before most MPI settings take effect. Only a setting with ``first``
    in ``settings.toml`` can make the rank fail even earlier. ``by_chance`` lists outcomes other than
    ``outcome`` that repetitions of the same launch had.
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
    """The outcome of a launch whose daemons and MPI library are from different releases of Open MPI.

    The daemons start the ranks. ``launcher`` has version bounds for the daemons. ``versions`` has version
    bounds for the MPI library.
    """

    launcher: str
    outcome: Outcome
    because: str


class Inside(MpiRow, frozen=True, kw_only=True):
    """The outcome of a launch whose launcher (mpirun) runs inside the container.

    The row applies only to launches that meet its conditions; the comments in ``mpi.toml`` explain them.
    ``amd_unthreaded`` says whether the processor is from AMD and has one thread per core. ``without`` and
    ``empty`` are names of variables. A row with ``without`` applies only if neither the image nor the launch
    sets this variable. A row with ``empty`` applies only if this variable has an empty value.
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

    With the options in the table ``without_ssh``, the launcher starts ranks only on its own node and does not
    look for ssh. With the options in the table ``agent``, the launcher starts the daemon of each node through
    the program ``toolkit-agent`` instead of ssh. The options in ``agent`` also keep the daemons in the
    foreground, because Slurm stops processes that leave their job step.
    """

    words: tuple[str, ...]


NETMOD = "MPIR_CVAR_CH4_NETMOD"
"""The variable that selects the network module of MPICH. Without it, MPICH uses its first network module."""


def netmods(mpi: ImageMpi) -> list[str]:
    """Return the network modules that an MPICH was built with; MPICH uses the first module by default."""
    return [name for name in (mpi.device or "").partition(":")[2].split(",") if name]


class Defect(MpiRow, frozen=True, kw_only=True):
    """A defect of certain MPI releases.

    ``lifted_by`` is a variable, or an option of the container runtime, with which a launch avoids the defect.
    ``lift`` is a value of this variable that avoids the defect on a host without a fast network; on other
    hosts, the value would disable the fast network. In ``lift``, toolkit replaces ``{interface}`` with the
    name of the host's only network interface.

    ``by_chance`` lists outcomes other than ``outcome`` that repetitions of the same launch had. A defect with
    the outcome ``ok`` stops only a few launches, so toolkit only warns of the defect.

    ``nodes``, ``ranks_per_node``, ``served_by`` and ``modes`` say which launches the defect affects.
    ``under`` has version bounds for the host's Open MPI, which starts the ranks. ``batch`` says whether the
    launcher runs on a node of the job, as in a batch script; if it is false, the launcher runs on a login
    node. ``launched_by`` is only for launches with the host's mpirun, and lists MPIs of the host, such as
    ``mpich <5``. Such a launch has the defect if its mpirun belongs to a listed MPI, or if the list is empty.
    ``netmod`` is the MPICH network module with the defect.
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
        """Return whether ``lift`` avoids the defect for this MPI. If ``lift`` is a network module, the MPI
        must contain this module.
        """
        return bool(self.lift) and (self.lifted_by != NETMOD or self.lift in netmods(mpi))

    def holds_under(self, mpi: HostMpi | None) -> bool:
        """Return whether the defect occurs if the mpirun of the host's MPI ``mpi`` starts the ranks. If
        ``launched_by`` is empty, the result is always true.
        """
        rows = (entry.partition(" ") for entry in self.launched_by)
        named = (
            mpi and mpi.implementation == name and within(mpi.version or "", bounds)
            for name, _, bounds in rows
        )
        return not self.launched_by or any(named)


class BatchLauncher(Row, frozen=True, kw_only=True):
    """A launcher of a batch system other than Slurm, and the outcome of a launch with this launcher.

    ``implementation`` and ``versions`` select the image's MPI; an empty ``implementation`` selects every MPI.
    toolkit uses the first matching row of a launcher. The last row of each launcher matches every MPI.
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

    The row applies only to an MPICH whose device starts with ``device``, and to images whose UCX version is
    within ``ucx``. If ``own_shm`` is true, the row applies only to an MPICH that itself sends messages
    through shared memory; if ``own_shm`` is false, only to an MPICH that leaves these messages to UCX.
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
    transports. ``several_nodes``, if given, replaces ``outcome`` for launches on several nodes. Repetitions
    of the same launch also had the outcomes in ``by_chance`` (on several nodes) and ``by_chance_on_one`` (on
    one node). A launch that sets the variable ``lifted_by`` (``NAME=VALUE``) avoids the fault.
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

    If ``alone`` is true, the row is about ranks that also find no PMI server, so each rank starts as a world
    of size 1.
    """

    outcome: Outcome
    alone: bool
    nodes: Count = "any"


class Variables(Row, frozen=True, kw_only=True):
    """Names of environment variables of the host that can affect MPI programs in a container."""

    paths: tuple[str, ...]
    hide_plugins: tuple[str, ...]
    hide_pmix_plugins: tuple[str, ...]
    harmful_prefixes: tuple[str, ...]
    harmful: tuple[str, ...]
    fabric: tuple[str, ...]
    """Patterns of variables that toolkit does not remove, because they are parameters of a network driver."""
    mounted: tuple[str, ...]
    """Patterns of further variables. toolkit keeps them if the host's MPI replaces the image's MPI."""
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
        """Return the rows of ``mpi.toml`` about ``program``, the launcher of a batch system. The result is
        empty for srun and for launchers of MPI libraries.
        """
        return tuple(row for row in self.starter if row.program == program)


@cache
def mpi() -> MpiKnowledge:
    """Return the content of ``mpi.toml``."""
    return read("mpi", MpiKnowledge)


def mpi_of_file(implementation: str, path: str) -> str | None:
    """Return the release of an Open MPI or MPICH library, found from its file name. Return ``None`` if the
    name does not identify the release.

    ``path`` is the path of the library after all symbolic links are resolved.
    """
    known = mpi().library_file.get(implementation, {})
    return known.get(without_hash(Path(path).name))


def bundled_pmix(open_mpi: str) -> str | None:
    """Return the release of the PMIx library that an Open MPI release contains. Return ``None`` if
    ``mpi.toml`` does not list the Open MPI release.
    """
    return next((p for v, p in mpi().bundled_pmix.items() if within(open_mpi, f"=={v}")), None)


def counts(count: Count, number: int) -> bool:
    """Return whether a number of nodes or ranks satisfies ``count``, a condition in a row of ``mpi.toml``:
    ``one``, ``several`` or ``any``.
    """
    return count == "any" or (count == "one") == (number == 1)
