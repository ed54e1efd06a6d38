"""Read ``recipes/knowledge``: what is known of MPI, PMIx and job output, each row with its source."""

from functools import cache
from pathlib import Path
from typing import Literal, TypeVar

import msgspec

from toolkit.data import shipped
from toolkit.errors import BadInput
from toolkit.model.finding import Severity
from toolkit.model.prediction import Outcome
from toolkit.versions import within

_T = TypeVar("_T")

Count = Literal["one", "several", "any"]


class _Row(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    source: str


class Mismatch(_Row, frozen=True, kw_only=True):
    """What a library does that does not speak the interface which the launcher offers."""

    implementation: str
    outcome: Outcome
    because: str
    versions: str = ""
    sees: Literal["pmix", "pmi2", ""] = ""
    marker: str = ""


class Inside(_Row, frozen=True, kw_only=True):
    """What a launcher inside the container does with an allocation around it."""

    implementation: str
    outcome: Outcome
    because: str
    nodes: Count
    versions: str = ""
    ssh: bool | None = None
    plugins: bool | None = None
    forked: bool | None = None


class Defect(_Row, frozen=True, kw_only=True):
    """A fault of single releases; a variable in the plan may lift it."""

    id: str
    implementation: str
    versions: str
    outcome: Outcome
    title: str
    fix: str
    nodes: Count = "any"
    ranks_per_node: Count = "any"
    lifted_by: str = ""


class Pair(_Row, frozen=True, kw_only=True):
    """How a PMIx server and a PMIx client get on; ``launcher`` bounds the host's Open MPI."""

    client: str
    outcome: Outcome
    because: str
    server: str = ""
    launcher: str = ""
    nodes: Count = "any"
    unset: tuple[str, ...] = ()


class Caution(_Row, frozen=True, kw_only=True):
    """A release of the PMIx client that needs care under Slurm."""

    client: str
    title: str
    slurm: str = ""
    env: dict[str, str] = {}


class OutsideStep(_Row, frozen=True, kw_only=True):
    """Launchers that start ranks outside any step of Slurm, and libraries that need to see one."""

    launcher: str
    image: str
    variable: str


class Variables(_Row, frozen=True, kw_only=True):
    """Names of variables that belong to the host's own MPI."""

    paths: tuple[str, ...]
    hide_plugins: tuple[str, ...]
    harmful_prefixes: tuple[str, ...]
    harmful: tuple[str, ...]
    container_options: tuple[str, ...]
    harmless: tuple[str, ...]


class MpiKnowledge(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``mpi.toml``."""

    mismatch: tuple[Mismatch, ...]
    inside: tuple[Inside, ...]
    outside_step: OutsideStep
    defect: tuple[Defect, ...]
    bundled_pmix: dict[str, str]
    library_file: dict[str, str]
    variables: Variables


class PmixKnowledge(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``pmix.toml``."""

    srun: tuple[Pair, ...]
    mpirun: tuple[Pair, ...]
    caution: tuple[Caution, ...]
    library_file: dict[str, str]


class Signature(_Row, frozen=True, kw_only=True):
    """A line of job output that tells a cause; ``sample`` is a real line that the pattern must find.

    ``finding`` is the id of the rule that foresees it, or empty text where none does.
    """

    id: str
    pattern: str
    title: str
    fix: str
    sample: str
    severity: Severity = "error"
    finding: str = ""


class SignatureKnowledge(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``signatures.toml``; the first signature is the most telling one."""

    signature: tuple[Signature, ...]


@cache
def mpi() -> MpiKnowledge:
    """Return what is known of MPI libraries and launchers."""
    return _read("mpi", MpiKnowledge)


@cache
def pmix() -> PmixKnowledge:
    """Return what is known of PMIx servers and clients."""
    return _read("pmix", PmixKnowledge)


@cache
def signatures() -> tuple[Signature, ...]:
    """Return the catalogue of job output."""
    return _read("signatures", SignatureKnowledge).signature


def pmix_of_file(path: str) -> str | None:
    """Tell the release of PMIx from the real file name of its library."""
    return pmix().library_file.get(Path(path).name)


def mpi_of_file(path: str) -> str | None:
    """Tell the release of an MPI from the real file name of its library."""
    return mpi().library_file.get(Path(path).name)


def bundled_pmix(open_mpi: str) -> str | None:
    """Tell the release of PMIx that an Open MPI carries inside itself."""
    return next((p for v, p in mpi().bundled_pmix.items() if within(open_mpi, f"=={v}")), None)


def counts(wanted: Count, number: int) -> bool:
    """Tell whether a number of nodes or ranks is ``one`` or ``several``, as a row wants it."""
    return wanted == "any" or (wanted == "one") == (number == 1)


def _read(name: str, kind: type[_T]) -> _T:
    file = shipped("recipes") / "knowledge" / f"{name}.toml"
    try:
        return msgspec.toml.decode(file.read_bytes(), type=kind)
    except (msgspec.DecodeError, OSError) as error:
        raise BadInput(f"{file}: {error}", fix="this file came with toolkit: install it again") from error
