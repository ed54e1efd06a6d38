"""``pmix.toml``: how PMIx servers and clients get on."""

import re
from functools import cache
from pathlib import Path

import msgspec

from toolkit.knowledge.mpi import Count
from toolkit.knowledge.reading import Row, read
from toolkit.model.prediction import Outcome
from toolkit.sonames import unhashed

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
    """

    client: str
    outcome: Outcome
    late: bool = False


class Caution(Row, frozen=True, kw_only=True):
    """A release of the PMIx client that needs care under Slurm."""

    client: str
    title: str
    slurm: str = ""
    env: dict[str, str] = msgspec.field(default_factory=dict)


class PmixKnowledge(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``pmix.toml``."""

    srun: tuple[Pair, ...]
    mpirun: tuple[Pair, ...]
    shared: tuple[Shared, ...]
    caution: tuple[Caution, ...]
    library_file: dict[str, str]


@cache
def pmix() -> PmixKnowledge:
    """Return what is known of PMIx."""
    return read("pmix", PmixKnowledge)


def pmix_of_file(path: str) -> str | None:
    """Tell the release of PMIx from the real file name of its library."""
    return pmix().library_file.get(unhashed(Path(path).name))


def is_plugin(name: str) -> bool:
    """Tell whether this word behind ``srun --mpi=`` serves PMIx.

    ``pmix`` and ``pmix_v5`` are Slurm's own, ``pspmix`` is that of ParaStation (slurm/sites/juwels.toml).
    """
    return _PLUGIN.fullmatch(name) is not None
