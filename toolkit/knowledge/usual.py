"""Read ``usual.toml``: the properties of usual clusters and usual images."""

from functools import cache
from typing import Any

import msgspec

from toolkit.knowledge.reading import Row, read
from toolkit.model.prediction import Mode


class TicketQuestion(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A fact that may decide the outcome of a launch. If a support ticket does not state this fact, toolkit
    advises the user to look the fact up.

    ``values`` are common values besides ``usual``; ``command`` is a command that prints the fact.
    """

    fact: str
    asks: str
    usual: str
    needs: str = ""
    values: tuple[Any, ...]
    command: str


class Absent(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Names of facts that are absent from a usual host (``host``) and from a usual image (``image``)."""

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


class DistributionRelease(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Kernel and C library of a distribution's release, and whether its users can create user namespaces."""

    release: str
    kernel: str
    glibc: str
    user_namespaces: bool = True


class DistributionFamily(Row, frozen=True, kw_only=True):
    """Releases of distributions that share release numbers, kernels and C libraries."""

    names: tuple[str, ...]
    releases: tuple[DistributionRelease, ...]


class Usual(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of ``usual.toml``."""

    external_pmix: str
    host: dict[str, Any]
    image: dict[str, Any]
    absent: Absent
    image_mpis: tuple[str, ...]
    mpi_of_mode: dict[Mode, str]
    interfaces: dict[str, tuple[str, ...]]
    beside: dict[str, dict[str, Any]]
    old_kernel: OldKernel
    distribution: tuple[DistributionFamily, ...]
    setuid_kernel: str
    runtime_releases: dict[str, str]
    setuid: tuple[InstalledSetuid, ...]
    question: tuple[TicketQuestion, ...]


@cache
def usual_properties() -> Usual:
    """Return the content of ``usual.toml``."""
    return read("usual", Usual)


def distribution_release(distribution: str | None) -> DistributionRelease | None:
    """Return the usual facts of a distribution's release, such as ``ubuntu 22.04``; ``None`` for an unknown
    distribution.
    """
    name, _, number = (distribution or "").partition(" ")
    rows = (row for row in usual_properties().distribution if name in row.names)
    releases = (one for row in rows for one in row.releases)
    words = f"{number.partition(' ')[0]}."
    return next((one for one in releases if words.startswith(f"{one.release}.")), None)
