"""``usual.toml``: the properties of an ordinary cluster and an ordinary image."""

from functools import cache
from typing import Any

import msgspec

from toolkit.knowledge.reading import Row, read


class TicketQuestion(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A fact that may decide; ``values`` are other common values, ``command`` prints it."""

    fact: str
    asks: str
    usual: str
    needs: str = ""
    values: tuple[Any, ...]
    command: str


class Absent(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Facts that an ordinary host and image do not have."""

    host: tuple[str, ...]
    image: tuple[str, ...]


class OldKernel(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The C library that an image has if the kernel is older than ``kernel``."""

    kernel: str
    glibc: str


class InstalledSetuid(Row, frozen=True, kw_only=True):
    """A runtime that is usually installed with setuid root."""

    name: str
    versions: str = ""


class Usual(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``usual.toml``."""

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
    """Return the properties of an ordinary cluster and an ordinary image."""
    return read("usual", Usual)
