"""``mpi.toml``: how MPI libraries and launchers behave."""

from functools import cache
from pathlib import Path
from typing import Literal

import msgspec

from toolkit.knowledge.reading import Row, read
from toolkit.model.facts import HostMpi, ImageMpi
from toolkit.model.prediction import Mode, Outcome
from toolkit.sonames import unhashed
from toolkit.versions import within

Count = Literal["one", "several", "any"]
Sees = Literal["pmix", "pmi2", "none"]


class MpiRow(Row, frozen=True, kw_only=True):
    """What is known of an implementation in some of its releases; in all where none are named."""

    implementation: str
    versions: str = ""

    def of(self, mpi: ImageMpi | HostMpi) -> bool:
        """Tell whether this row speaks of this library."""
        return self.implementation == mpi.implementation and within(mpi.version or "", self.versions)


class Mismatch(MpiRow, frozen=True, kw_only=True):
    """What a library does that does not speak the interface which the launcher offers.

    ``ssh`` says whether the image has a program that starts daemons on other nodes, ``munge`` whether the
    server of PMIx offers that proof of identity, ``mpiexec`` whether PATH finds a launcher in the image.
    ``speaks`` is an interface that it was built for; of ``amd_unthreaded`` see :class:`Inside`. ``first``: it
    ends before settings of the MPI are looked at, other than those that are ``first`` themselves.
    ``allocation`` says whether a rank sees one of Slurm. ``by_chance`` are outcomes of other tries.
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
    """What a library does that daemons of another release start; ``launcher`` bounds theirs."""

    launcher: str
    outcome: Outcome
    because: str


class Inside(MpiRow, frozen=True, kw_only=True):
    """What a launcher inside the container does with an allocation around it.

    ``amd_unthreaded`` says that the processor is AMD's, and that its cores have one thread each; ``without``
    names a variable that the image does not set, ``empty`` one that is set to nothing.
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
    """Words that a launcher inside the container is given.

    ``without_ssh``: it starts the ranks of its own node where the image has no ssh. ``agent``: it calls
    ``toolkit-agent`` in place of ssh, and starts all daemons itself. A daemon has to stay in the foreground:
    what leaves its step of Slurm is ended with that.
    """

    words: tuple[str, ...]


class Defect(MpiRow, frozen=True, kw_only=True):
    """A fault of single releases; a variable or an option of the container in the plan may lift it.

    ``lift`` is the value that does where there is no fast fabric, which it would shut out;
    ``{interface}`` in it stands for the host's network interface, if it has one only. ``by_chance`` are
    outcomes of other tries. ``under`` bounds the releases of the host's Open MPI that starts it, ``batch``
    says that the launcher is on a node of its ranks. ``launched_by`` lists the MPI of the host's mpirun under
    which it was measured ("mpich <5"); empty where srun and mpirun showed it alike.
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

    def launched(self, mpi: HostMpi | None) -> bool:
        """Return whether it was measured under this MPI of the host, or under every launcher."""
        rows = (entry.partition(" ") for entry in self.launched_by)
        named = (
            mpi and mpi.implementation == name and within(mpi.version or "", bounds)
            for name, _, bounds in rows
        )
        return not self.launched_by or any(named)


class OutsideStep(Row, frozen=True, kw_only=True):
    """Launchers that start ranks outside any step of Slurm, and libraries that need to see one.

    ``told_by_slurm`` bounds the releases of Slurm whose batch scripts have the variable themselves.
    """

    variable: str
    told_by_slurm: str


class Sharing(MpiRow, frozen=True, kw_only=True):
    """A row that counts for one way of sharing memory between the ranks of a node.

    ``device`` begins MPICH's, ``own_shm`` and ``ucx`` (bounds) are facts of the image.
    """

    outcome: Outcome
    device: str = ""
    own_shm: bool | None = None
    ucx: str = ""


class SharedMemory(Sharing, frozen=True, kw_only=True):
    """What a library does with less shared memory than ``least`` bytes; with ``enough`` it works.

    ``least`` and ``enough`` count for two ranks on a node; between them nothing was measured.
    """

    least: int
    enough: int


class Apart(MpiRow, frozen=True, kw_only=True):
    """What ranks of one node do that have a /dev/shm each."""

    outcome: Outcome
    because: str


class Namespaces(Sharing, frozen=True, kw_only=True):
    """What ranks of one node do that are in user namespaces of their own.

    ``by`` says that it is so only where messages go through UCX, in an MPI that has other ways as well.
    """

    because: str
    by: Literal["ucx", ""] = ""
    ptrace: bool | None = None
    several_nodes: Outcome | None = None
    lifted_by: str = ""


class Libfabric(MpiRow, frozen=True, kw_only=True):
    """What a library does that opens libfabric and finds none; ``alone``: it finds no launcher either."""

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
    container_options: tuple[str, ...]


class ReleaseRows(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Releases of which something holds that several rules ask for; the field's name says what."""

    orte: MpiRow
    prrte: MpiRow
    own_messages: MpiRow
    ignores_slurm: MpiRow
    two_libraries: MpiRow
    pmi_first: MpiRow
    waits_for_the_dead: MpiRow


class MpiKnowledge(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``mpi.toml``."""

    mismatch: tuple[Mismatch, ...]
    release: ReleaseRows
    daemons: tuple[Daemons, ...]
    inside: tuple[Inside, ...]
    without_ssh: tuple[LauncherWords, ...]
    agent: tuple[LauncherWords, ...]
    outside_step: OutsideStep
    defect: tuple[Defect, ...]
    shared_memory: tuple[SharedMemory, ...]
    apart: tuple[Apart, ...]
    namespaces: tuple[Namespaces, ...]
    libfabric: tuple[Libfabric, ...]
    bundled_pmix: dict[str, str]
    library_file: dict[str, dict[str, str]]
    variables: Variables


@cache
def mpi() -> MpiKnowledge:
    """Return what is known of MPI libraries and launchers."""
    return read("mpi", MpiKnowledge)


def mpi_of_file(implementation: str, path: str) -> str | None:
    """Tell the release of an Open MPI or MPICH from the real file name of its library."""
    known = mpi().library_file.get(implementation, {})
    return known.get(unhashed(Path(path).name))


def bundled_pmix(open_mpi: str) -> str | None:
    """Tell the release of PMIx that an Open MPI carries inside itself."""
    return next((p for v, p in mpi().bundled_pmix.items() if within(open_mpi, f"=={v}")), None)


def counts(wanted: Count, number: int) -> bool:
    """Tell whether a number of nodes or ranks is ``one`` or ``several``, as a row wants it."""
    return wanted == "any" or (wanted == "one") == (number == 1)
