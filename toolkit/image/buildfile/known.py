"""``buildfiles.toml``: what the text of a build file says about the image that it makes."""

import re
from functools import cache
from typing import Literal

import msgspec

from toolkit.knowledge.reading import Row, read

Installer = Literal["apt", "dnf", "conda", "pip"]
"""Programs that install packages; ``dnf`` also stands for yum and microdnf."""


class BaseName(Row, frozen=True, kw_only=True):
    """A base image; named groups of ``pattern`` are versions. ``opaque`` names facts that the name of the
    image does not contain.
    """

    pattern: str
    release: str = ""
    conda: bool = False
    musl: bool = False
    opaque: str = ""


class Distribution(Row, frozen=True, kw_only=True):
    """A release of a distribution and versions of its packages; empty if updates change them, or unknown.

    ``pmix`` is the client that the distribution's Open MPI is linked with.
    """

    names: tuple[str, ...]
    title: str
    glibc: str
    openmpi: str = ""
    pmix: str = ""
    mpich: str = ""


class MpiPackage(Row, frozen=True, kw_only=True):
    """A package that contains an MPI."""

    installer: Installer
    pattern: str
    mpi: str


class MpiArchive(Row, frozen=True, kw_only=True):
    """The name of an archive of source code, with its version."""

    pattern: str
    mpi: str


class BuildFileKnowledge(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``buildfiles.toml``."""

    base: tuple[BaseName, ...]
    distribution: tuple[Distribution, ...]
    package: tuple[MpiPackage, ...]
    archive: tuple[MpiArchive, ...]
    python: dict[str, str]


@cache
def buildfiles() -> BuildFileKnowledge:
    """Return the whole table."""
    return read("buildfiles", BuildFileKnowledge)


def base_of(reference: str) -> tuple[BaseName, dict[str, str]] | None:
    """Return the row of a base image and the versions that its name tells; ``None`` for another image."""
    name = re.sub(r"^(?:docker\.io/)?(?:library/)?", "", reference.partition("@")[0])
    for row in buildfiles().base:
        if found := re.fullmatch(row.pattern, name):
            return row, {key: value for key, value in found.groupdict().items() if value}
    return None


def distribution_named(release: str) -> Distribution | None:
    """Return the distribution of a tag or a code name."""
    return next((row for row in buildfiles().distribution if release in row.names), None)


def mpi_of_package(installer: str, package: str) -> tuple[str, str] | None:
    """Return the MPI that a package contains, and its version if the package's name contains it."""
    for row in buildfiles().package:
        if row.installer == installer and (found := re.fullmatch(row.pattern, package)):
            return row.mpi, found.groupdict().get("version") or ""
    return None
