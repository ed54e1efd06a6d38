"""Read ``pmix.toml``: which PMIx servers and clients are compatible."""

import re
from functools import cache
from pathlib import Path

import msgspec

from toolkit.knowledge.mpi import Count
from toolkit.knowledge.reading import Row, read
from toolkit.model.prediction import Outcome
from toolkit.sonames import without_hash
from toolkit.versions import within

_PLUGIN = re.compile(r"pmix(?:_v\d+)?|pspmix", re.ASCII)


class Pair(Row, frozen=True, kw_only=True):
    """The outcome of a launch whose PMIx server and PMIx client are within the version bounds ``server`` and
    ``client``; ``launcher`` has version bounds for the host's Open MPI.

    If ``late`` is true, the ranks complete their work, but fail when they exit. ``found`` is false if the
    client does not find the server. The outcome then depends on the MPI, and ``outcome`` applies only to an
    MPI without a matching row in ``mpi.toml``.
    """

    client: str
    outcome: Outcome
    because: str
    found: bool = True
    server: str = ""
    launcher: str = ""
    nodes: Count = "any"
    batch: bool | None = None
    late: bool = False
    unset: tuple[str, ...] = ()


class Shared(Row, frozen=True, kw_only=True):
    """The outcome of a launch in which all ranks of a node inherit the PMIx identity of Hydra's proxy, the
    process with which MPICH's launcher starts these ranks.

    If ``late`` is true, the ranks form several worlds, each with one rank of every node, and fail only when
    they exit. ``by_chance`` lists outcomes other than ``outcome`` that repetitions of the same launch
    had.
    """

    client: str
    outcome: Outcome
    by_chance: tuple[Outcome, ...] = ()
    late: bool = False


class Caution(Row, frozen=True, kw_only=True):
    """Releases of the PMIx client that have a fault under Slurm.

    If ``slurm`` has version bounds, the fault occurs only under Slurm releases within these bounds. To
    avoid the fault, toolkit sets the variables ``env`` inside the container.
    """

    client: str
    title: str
    slurm: str = ""
    env: dict[str, str] = msgspec.field(default_factory=dict)


class Stores(Row, frozen=True, kw_only=True):
    """The data stores: components of PMIx with which a server shares data with its clients.

    ``files`` are the stores that use shared files. Servers within the version bounds ``in_tmp`` create these
    files below /tmp. ``offered`` maps the name of a store to the bounds of the servers that offer the store.
    Releases within ``early`` have the store shmem, which is incompatible with later stores.
    """

    files: tuple[str, ...]
    in_tmp: str
    early: str
    offered: dict[str, str]


class Insists(Row, frozen=True, kw_only=True):
    """Version bounds of PMIx clients and servers: the clients fail if they lack a component of the server.

    Servers within ``server`` send the names of their components to the clients. Clients within ``client``
    fail if they lack a component that the server names.
    """

    client: str
    server: str


class PmixKnowledge(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of ``pmix.toml``."""

    srun: tuple[Pair, ...]
    mpirun: tuple[Pair, ...]
    shared: tuple[Shared, ...]
    stores: Stores
    insists: Insists
    caution: tuple[Caution, ...]
    library_file: dict[str, str]


@cache
def pmix() -> PmixKnowledge:
    """Return the content of ``pmix.toml``."""
    return read("pmix", PmixKnowledge)


def pmix_of_file(path: str) -> str | None:
    """Return the release of a PMIx library, found from its file name. Return ``None`` if the name does not
    identify the release.

    ``path`` is the path of the library after all symbolic links are resolved.
    """
    return pmix().library_file.get(without_hash(Path(path).name))


def store_of(release: str) -> str | None:
    """Return the shared-memory store of a PMIx release, such as ``shmem2`` for 5.0.7; ``None`` for releases
    before 5.0.2.
    """
    return next((name for name, bounds in pmix().stores.offered.items() if within(release, bounds)), None)


def is_plugin(name: str) -> bool:
    """Return whether the value ``name`` of ``srun --mpi=`` provides PMIx.

    ``pmix`` and ``pmix_v5`` are plugins of Slurm; ``pspmix`` is a plugin of ParaStation
    (slurm/sites/juwels.toml).
    """
    return _PLUGIN.fullmatch(name) is not None


def release_of(plugin: str) -> int:
    """Return the major release of PMIx in a plugin's name, such as 5 for ``pmix_v5``. Return 0 if the name
    has no number.
    """
    number = plugin.partition("_v")[2]
    return int(number) if number.isdecimal() and len(number) < 4 else 0


def releases(major: int) -> tuple[str, ...]:
    """Return ``MAJOR.0.0`` and all PMIx releases in ``pmix.toml`` with the major number ``major``."""
    known = {name for name in pmix().library_file.values() if name.startswith(f"{major}.")}
    return tuple(sorted({f"{major}.0.0", *known}))
