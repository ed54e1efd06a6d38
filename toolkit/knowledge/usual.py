"""``usual.toml``: the properties of a usual cluster and a usual image."""

from functools import cache
from typing import Any

import msgspec

from toolkit.knowledge.reading import Row, read


class TicketQuestion(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A fact that may decide the outcome. ``values`` are other common values; ``command`` is a command that
    prints the fact.
    """

    fact: str
    asks: str
    usual: str
    needs: str = ""
    values: tuple[Any, ...]
    command: str


class Absent(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Facts that a usual host and a usual image do not have."""

    host: tuple[str, ...]
    image: tuple[str, ...]


class OldKernel(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The glibc version of a usual image if the host's kernel is older than ``kernel``."""

    kernel: str
    glibc: str


class InstalledSetuid(Row, frozen=True, kw_only=True):
    """A container runtime that is usually installed setuid root."""

    name: str
    versions: str = ""


class Usual(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of ``usual.toml``."""

    external_pmix: str
    host: dict[str, Any]
    image: dict[str, Any]
    absent: Absent
    interfaces: dict[str, tuple[str, ...]]
    beside: dict[str, dict[str, Any]]
    old_kernel: OldKernel
    runtime_releases: dict[str, str]
    setuid: tuple[InstalledSetuid, ...]
    question: tuple[TicketQuestion, ...]


@cache
def usual_properties() -> Usual:
    """Return the content of ``usual.toml``."""
    return read("usual", Usual)
