"""A recipe: the components that a user wants in an image, as a file under ``recipes/`` lists them."""

from typing import Literal, get_args

import msgspec

MPIS = ("openmpi", "mpich")
"""The MPI components; a recipe wants exactly one of them."""

MATCH_HOST = "match-host"
"""The constraint that chooses a version that fits the cluster."""

LONGEST_LINE = 300
"""The maximum length of a title, and of the reason why an image cannot be built, in characters."""

Operation = Literal["mpi", "gloo", "nccl"]
OPERATIONS: tuple[Operation, ...] = get_args(Operation)


class _RecipeSection(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class HorovodWish(_RecipeSection, frozen=True, kw_only=True):
    """The operations that the recipe wants in Horovod."""

    operations: tuple[Operation, ...] = ("mpi", "gloo")
    """The operations that the build enables in Horovod; ``nccl`` needs a recipe with CUDA."""


class MpiWish(_RecipeSection, frozen=True, kw_only=True):
    """The source of the MPI: the distribution's packages, a wheel, or a source archive; by default any of
    these.
    """

    provider: Literal["", "debian", "pypi", "source"] = ""
    """``debian``: the distribution's packages. ``pypi``: a wheel. ``source``: a source archive, configured
    for a Slurm site.
    """


class Recipe(_RecipeSection, frozen=True, kw_only=True):
    """One recipe: constraints from which the solver chooses versions.

    A constraint is ``*``, ``2.15.*``, ``>=4.1,<5``, one version, or ``match-host``.
    """

    schema: Literal["toolkit.recipe/2"]
    """The schema of this file."""
    title: str
    """A description in one line, for lists and image labels."""
    base: str = ""
    """A distribution and its release, ``debian:bookworm`` or ``debian:*``; by default any."""
    architecture: str = "x86_64"
    """Processor architecture of the image, as ``uname -m`` prints it."""
    packages: tuple[str, ...] = ()
    """Further Python packages of the image, each with its version: ``name==version``."""
    indexes: tuple[str, ...] = ()
    """https addresses of further package indexes; toolkit also uses the indexes in pip's configuration."""
    unbuildable: str = ""
    """The reason why most machines cannot build the image. toolkit renders and checks such a recipe, and does
    not build it.
    """
    want: dict[str, str]
    """Component → constraint."""
    horovod: HorovodWish = HorovodWish()
    mpi: MpiWish = MpiWish()

    @property
    def operations(self) -> tuple[Operation, ...]:
        """The operations that the recipe wants in Horovod; empty if the recipe does not want Horovod."""
        return self.horovod.operations if "horovod" in self.want else ()
