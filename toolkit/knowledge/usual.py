"""Read ``usual.toml``: facts about a cluster and an image. toolkit assumes these facts if a support ticket
does not state them.
"""

from functools import cache
from typing import Any

import msgspec

from toolkit.knowledge.reading import Row, read
from toolkit.model.prediction import Mode


class TicketQuestion(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A fact that may decide the outcome of a launch. If a support ticket does not state this fact, toolkit
    advises the user to look the fact up.

    ``asks`` is an indirect question, such as "which MPI is in the image". ``usual`` is a sentence that states
    the usual value. ``values`` are other common values; ``command`` prints the fact. If ``needs`` names
    another fact, toolkit asks the question only if the ticket states this other fact.
    """

    fact: str
    asks: str
    usual: str
    needs: str = ""
    values: tuple[Any, ...]
    command: str


class Absent(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Names of facts about things, such as GPUs, that a usual host or a usual image does not have."""

    host: tuple[str, ...]
    image: tuple[str, ...]


class OldKernel(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """On hosts with a kernel older than ``kernel``, images start only if their glibc is at most ``glibc``."""

    kernel: str
    glibc: str


class InstalledSetuid(Row, frozen=True, kw_only=True):
    """A container runtime that is usually installed setuid root; empty ``versions`` means all versions."""

    name: str
    versions: str = ""


class DistributionRelease(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Kernel and glibc of a distribution's release, and whether ordinary users can create user namespaces."""

    release: str
    kernel: str
    glibc: str
    user_namespaces: bool = True


class DistributionFamily(Row, frozen=True, kw_only=True):
    """Distributions that share release numbers, kernels and C libraries, such as RHEL and Rocky Linux."""

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
    """Return the usual facts of a distribution's release; ``None`` if ``usual.toml`` lacks the release.

    ``distribution`` is a name with a release number, such as ``ubuntu 22.04``.
    """
    name, _, number = (distribution or "").partition(" ")
    rows = (row for row in usual_properties().distribution if name in row.names)
    releases = (one for row in rows for one in row.releases)
    words = f"{number.partition(' ')[0]}."
    return next((one for one in releases if words.startswith(f"{one.release}.")), None)
