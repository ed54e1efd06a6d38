"""Read ``buildfiles.toml``, the table of base images and packages that build files name."""

import re
from functools import cache
from typing import Literal

import msgspec

from toolkit.knowledge.reading import Row, read

Installer = Literal["apt", "dnf", "conda", "pip"]
"""The programs that install packages; ``dnf`` also stands for yum, microdnf and zypper."""


class BaseName(Row, frozen=True, kw_only=True):
    """A row of ``buildfiles.toml`` for a base image.

    The regular expression ``pattern`` matches the image's name; its named groups are versions. ``release`` is
    the release of the image's distribution, if the name does not contain the release. ``musl`` is true if the
    image has the C library musl instead of glibc. ``opaque`` says which facts toolkit cannot derive from the
    image's name.
    """

    pattern: str
    release: str = ""
    conda: bool = False
    musl: bool = False
    opaque: str = ""


class Distribution(Row, frozen=True, kw_only=True):
    """A row of ``buildfiles.toml`` for a release of a distribution, with the versions of its packages.

    A version is empty if toolkit does not know the version, or if the distribution's updates change it.
    ``pmix`` is the version of the PMIx library that the distribution's Open MPI uses.
    """

    names: tuple[str, ...]
    title: str
    glibc: str
    openmpi: str = ""
    pmix: str = ""
    mpich: str = ""


class MpiPackage(Row, frozen=True, kw_only=True):
    """A row of ``buildfiles.toml`` for packages that contain the MPI ``mpi``. The regular expression
    ``pattern`` matches the names of these packages.
    """

    installer: Installer
    pattern: str
    mpi: str


class MpiArchive(Row, frozen=True, kw_only=True):
    """A row of ``buildfiles.toml`` for the source archives of the MPI ``mpi``. The regular expression
    ``pattern`` finds the name of an archive or of a Git tag in a command of a build file. Its group
    ``version`` is the MPI's version.
    """

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
    """Return the row for the base image ``reference``, and the versions in the image's name; None if no row
    matches the name.
    """
    name = re.sub(r"^(?:docker\.io/)?(?:library/)?", "", reference.partition("@")[0])
    for row in buildfiles().base:
        if match := re.fullmatch(row.pattern, name):
            return row, {key: value for key, value in match.groupdict().items() if value}
    return None


def distribution_named(release: str) -> Distribution | None:
    """Return the row of the distribution whose release number or code name is ``release``, such as ``12`` or
    ``bookworm``; None if no row has this release.
    """
    return next((row for row in buildfiles().distribution if release in row.names), None)


def mpi_of_package(installer: str, package: str) -> tuple[str, str] | None:
    """Return the MPI that a package contains, and the version in the package's name (often empty). Return
    None if no row of ``buildfiles.toml`` matches the package.
    """
    for row in buildfiles().package:
        if row.installer == installer and (match := re.fullmatch(row.pattern, package)):
            return row.mpi, match.groupdict().get("version") or ""
    return None
