"""A recipe: a file in ``recipes/`` that lists the components that a user wants in an image."""

from typing import Literal, get_args

import msgspec

MPIS = ("openmpi", "mpich")
"""The MPI components; a recipe wants exactly one of them."""

MATCH_HOST = "match-host"
"""The version constraint that lets the cluster decide the version."""

LONGEST_LINE = 300
"""Maximum length, in characters, of a title and of the reason ``unbuildable``."""

Operation = Literal["mpi", "gloo", "nccl"]
OPERATIONS: tuple[Operation, ...] = get_args(Operation)


class _RecipeSection(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class HorovodWish(_RecipeSection, frozen=True, kw_only=True):
    """The operations, such as ``nccl``, that the recipe requests in Horovod."""

    operations: tuple[Operation, ...] = ("mpi", "gloo")
    """The operations that the build enables in Horovod; ``nccl`` needs a recipe with CUDA."""


class MpiWish(_RecipeSection, frozen=True, kw_only=True):
    """The source of the MPI: the distribution's packages, a wheel or a source archive; by default
    any source.
    """

    provider: Literal["", "debian", "pypi", "source"] = ""
    """``debian``: the distribution's packages. ``pypi``: a wheel. ``source``: a source archive, from which
    toolkit compiles an MPI that works with Slurm's PMI-2.
    """


class Recipe(_RecipeSection, frozen=True, kw_only=True):
    """A recipe: the constraints from which the solver chooses versions.

    A constraint is ``*``, ``2.15.*``, ``>=4.1,<5``, a single version, or ``match-host``.
    """

    schema: Literal["toolkit.recipe/2"]
    """The schema of this file."""
    title: str
    """A one-line description for lists and image labels."""
    base: str = ""
    """A distribution and its release, ``debian:bookworm`` or ``debian:*``; by default any base."""
    architecture: str = "x86_64"
    """Processor architecture of the image, as ``uname -m`` prints it."""
    packages: tuple[str, ...] = ()
    """Further Python packages for the image, each with its version: ``name==version``."""
    indexes: tuple[str, ...] = ()
    """https addresses of further package indexes; toolkit also uses the indexes in pip's configuration."""
    unbuildable: str = ""
    """The reason why most machines cannot build the image. toolkit renders and checks a recipe with
    ``unbuildable``, but does not build the image.
    """
    want: dict[str, str]
    """Component → constraint."""
    horovod: HorovodWish = HorovodWish()
    mpi: MpiWish = MpiWish()

    @property
    def operations(self) -> tuple[Operation, ...]:
        """The operations that the recipe requests in Horovod; empty for a recipe without Horovod."""
        return self.horovod.operations if "horovod" in self.want else ()
