"""What a person wants in an image, as a file under ``recipes/`` states it."""

from typing import Literal

import msgspec


class _Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class MpiWish(_Section, frozen=True, kw_only=True):
    """The MPI library that everything in the image is built against."""

    implementation: Literal["openmpi"]
    version: str


class HorovodWish(_Section, frozen=True, kw_only=True):
    """Horovod and the ways in which it moves tensors."""

    version: str
    operations: tuple[Literal["mpi", "gloo"], ...] = ("mpi", "gloo")


class PackageWish(_Section, frozen=True, kw_only=True):
    """A package that has nothing but a version."""

    version: str


class Recipe(_Section, frozen=True, kw_only=True):
    """One recipe; versions are texts, because ``12.20`` as a number would be ``12.2``."""

    schema: Literal["toolkit.recipe/1"]
    title: str
    base: str
    """A distribution and its release, as in ``debian:bookworm``."""
    python: PackageWish
    mpi: MpiWish
    mpi4py: PackageWish | None = None
    tensorflow: PackageWish | None = None
    horovod: HorovodWish | None = None
    packages: tuple[str, ...] = ()
    """More packages for its Python, each pinned: ``name==version``."""
