"""Read ``reported.toml``: faults that public reports describe."""

from functools import cache
from typing import Literal

import msgspec

from toolkit.knowledge.mpi import Count
from toolkit.knowledge.reading import Row, read
from toolkit.model.prediction import Mode, Outcome


class Reported(Row, frozen=True, kw_only=True):
    """A publicly reported fault, and the conditions under which it occurs. The comment at the start of
    ``reported.toml`` explains the fields.
    """

    id: str
    outcome: Outcome
    by_chance: tuple[Outcome, ...] = ()
    title: str
    fix: str
    implementation: tuple[str, ...] = ()
    versions: str = ""
    device: str = ""
    facts: dict[str, str] = msgspec.field(default_factory=dict)
    runtime: str = ""
    launcher: tuple[str, ...] = ()
    launcher_versions: str = ""
    setuid: bool | None = None
    setting: dict[str, str] = msgspec.field(default_factory=dict)
    formats: tuple[str, ...] = ()
    distribution: str = ""
    modes: tuple[Mode, ...] = ()
    served_by: Literal["pmi", "pmix", ""] = ""
    nodes: Count = "any"
    ranks_per_node: int = 1
    provider: str = ""
    card: bool | None = None
    options: tuple[str, ...] = ()
    scheduler: str = ""
    fabric: str = ""
    gpus: Literal["amd", ""] = ""
    rocm: str = ""
    plugin: bool | None = None
    variables: tuple[str, ...] = ()
    lifted_by: tuple[str, ...] = ()
    lifted_by_host: tuple[str, ...] = ()
    lift: tuple[str, ...] = ()


class ReportedRows(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of ``reported.toml``."""

    reported: tuple[Reported, ...]


@cache
def reported_faults() -> tuple[Reported, ...]:
    """Return the publicly reported faults in ``reported.toml``."""
    return read("reported", ReportedRows).reported
