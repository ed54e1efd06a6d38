"""Read ``buildfiles.toml``, the table of base images and packages that build files name."""

import re
from functools import cache
from typing import Literal

import msgspec

from toolkit.knowledge.reading import Row, read

Installer = Literal["apt", "dnf", "conda", "pip"]
"""The programs that install packages; ``dnf`` also means yum and microdnf."""


class BaseName(Row, frozen=True, kw_only=True):
    """A row of ``buildfiles.toml`` for a base image.

    The regular expression ``pattern`` matches the image's name; its named groups are versions. ``opaque``
    says which facts toolkit cannot derive from the image's name.
    """

    pattern: str
    release: str = ""
    conda: bool = False
    musl: bool = False
    opaque: str = ""


class Distribution(Row, frozen=True, kw_only=True):
    """A row of ``buildfiles.toml`` for a release of a distribution, with the versions of its packages.

    A package's version is empty if toolkit does not know it, or if updates of the distribution change it.

    ``pmix`` is the version of the PMIx library with which the distribution links its Open MPI.
    """

    names: tuple[str, ...]
    title: str
    glibc: str
    openmpi: str = ""
    pmix: str = ""
    mpich: str = ""


class MpiPackage(Row, frozen=True, kw_only=True):
    """A row of ``buildfiles.toml`` for a package that contains an MPI."""

    installer: Installer
    pattern: str
    mpi: str


class MpiArchive(Row, frozen=True, kw_only=True):
    """A row of ``buildfiles.toml`` for an MPI's source archive; ``pattern`` has a group named ``version``."""

    pattern: str
    mpi: str


class BuildFileKnowledge(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The contents of ``buildfiles.toml``."""

    base: tuple[BaseName, ...]
    distribution: tuple[Distribution, ...]
    package: tuple[MpiPackage, ...]
    archive: tuple[MpiArchive, ...]
    python: dict[str, str]


@cache
def buildfiles() -> BuildFileKnowledge:
    """Return the contents of ``buildfiles.toml``."""
    return read("buildfiles", BuildFileKnowledge)


def base_of(reference: str) -> tuple[BaseName, dict[str, str]] | None:
    """Return the row for a base image and the versions in its name, or None if no row matches the name."""
    name = re.sub(r"^(?:docker\.io/)?(?:library/)?", "", reference.partition("@")[0])
    for row in buildfiles().base:
        if match := re.fullmatch(row.pattern, name):
            return row, {key: value for key, value in match.groupdict().items() if value}
    return None


def distribution_named(release: str) -> Distribution | None:
    """Return the distribution whose release number or code name is ``release``, for example ``12`` or
    ``bookworm``.
    """
    return next((row for row in buildfiles().distribution if release in row.names), None)


def mpi_of_package(installer: str, package: str) -> tuple[str, str] | None:
    """Return the MPI that a package contains and the version in the package's name; None if
    ``buildfiles.toml`` lists no MPI for the package.
    """
    for row in buildfiles().package:
        if row.installer == installer and (match := re.fullmatch(row.pattern, package)):
            return row.mpi, match.groupdict().get("version") or ""
    return None
