"""``pmix.toml``: how PMIx servers and clients get on."""

import re
from functools import cache
from pathlib import Path

import msgspec

from toolkit.knowledge.mpi import Count
from toolkit.knowledge.reading import Row, read
from toolkit.model.prediction import Outcome
from toolkit.sonames import unhashed
from toolkit.versions import within

_PLUGIN = re.compile(r"pmix(?:_v\d+)?|pspmix", re.ASCII)


class Pair(Row, frozen=True, kw_only=True):
    """How a PMIx server and a PMIx client get on; ``launcher`` bounds the host's Open MPI.

    ``late`` says that the ranks do their work, and fail as they end. Where the client does not find the
    server (``found`` is false) its MPI decides, and ``outcome`` is for one of which nothing is known.
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
    """What clients do that were all given the identity of one process of their node.

    ``late`` says that the ranks do their work in worlds of one rank a node, and fail as they end.
    ``by_chance`` are outcomes of other tries.
    """

    client: str
    outcome: Outcome
    by_chance: tuple[Outcome, ...] = ()
    late: bool = False


class Caution(Row, frozen=True, kw_only=True):
    """A release of the PMIx client that needs care under Slurm."""

    client: str
    title: str
    slurm: str = ""
    env: dict[str, str] = msgspec.field(default_factory=dict)


class Stores(Row, frozen=True, kw_only=True):
    """Where a server and its clients share what they know; ``offered`` bounds releases by store."""

    files: tuple[str, ...]
    in_tmp: str
    early: str
    offered: dict[str, str]


class Insists(Row, frozen=True, kw_only=True):
    """Clients that end where a component is missing that the server names, and servers that name some."""

    client: str
    server: str


class PmixKnowledge(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``pmix.toml``."""

    srun: tuple[Pair, ...]
    mpirun: tuple[Pair, ...]
    shared: tuple[Shared, ...]
    stores: Stores
    insists: Insists
    caution: tuple[Caution, ...]
    library_file: dict[str, str]


@cache
def pmix() -> PmixKnowledge:
    """Return what is known of PMIx."""
    return read("pmix", PmixKnowledge)


def pmix_of_file(path: str) -> str | None:
    """Tell the release of PMIx from the real file name of its library."""
    return pmix().library_file.get(unhashed(Path(path).name))


def store_of(release: str) -> str | None:
    """Return the store in files below /tmp that servers of a release name first, and its clients have."""
    return next((name for name, bounds in pmix().stores.offered.items() if within(release, bounds)), None)


def is_plugin(name: str) -> bool:
    """Tell whether this word behind ``srun --mpi=`` serves PMIx.

    ``pmix`` and ``pmix_v5`` are Slurm's own, ``pspmix`` is that of ParaStation (slurm/sites/juwels.toml).
    """
    return _PLUGIN.fullmatch(name) is not None


def release_of(plugin: str) -> int:
    """Return the release that the name of a plugin tells, 5 of ``pmix_v5``; 0 where it tells none."""
    number = plugin.partition("_v")[2]
    return int(number) if number.isdecimal() and len(number) < 4 else 0


def releases(major: int) -> tuple[str, ...]:
    """Return the releases of one major release that are known, and its first."""
    known = {name for name in pmix().library_file.values() if name.startswith(f"{major}.")}
    return tuple(sorted({f"{major}.0.0", *known}))
