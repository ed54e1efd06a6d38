"""A recipe: a file in ``recipes/`` that lists the components that a user wants in an image."""

from typing import Literal, get_args

import msgspec

MPIS = ("openmpi", "mpich")
"""The MPI components; a recipe wants at most one of them."""

MATCH_HOST = "match-host"
"""The constraint that allows each version that works on the user's cluster. If the user names no cluster, the
constraint allows all versions.
"""

LONGEST_LINE = 300
"""Maximum length, in characters, of the fields ``title`` and ``unbuildable`` of a recipe."""

Operation = Literal["mpi", "gloo", "nccl"]
OPERATIONS: tuple[Operation, ...] = get_args(Operation)


class _RecipeSection(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class HorovodWish(_RecipeSection, frozen=True, kw_only=True):
    """The section ``horovod`` of a recipe."""

    operations: tuple[Operation, ...] = ("mpi", "gloo")
    """The operations that the build enables in Horovod; ``nccl`` needs a recipe with CUDA."""


class MpiWish(_RecipeSection, frozen=True, kw_only=True):
    """The section ``mpi`` of a recipe."""

    provider: Literal["", "debian", "pypi", "source"] = ""
    """The source of the MPI. ``debian``: the distribution's packages. ``pypi``: a wheel. ``source``: a source
    archive, from which toolkit compiles an MPI that works with Slurm's PMI-2. By default (empty), any source.
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
    """The distribution and its release, such as ``debian:bookworm`` or ``debian:*``; by default (empty), any
    base.
    """
    architecture: str = "x86_64"
    """Processor architecture of the image, as ``uname -m`` prints it."""
    packages: tuple[str, ...] = ()
    """Python packages for the image that are not components in ``want``, each as ``name==version``."""
    indexes: tuple[str, ...] = ()
    """https addresses of package indexes, which toolkit uses in addition to the indexes in pip's
    configuration.
    """
    unbuildable: str = ""
    """The reason why most machines cannot build the image. If this field is not empty, toolkit checks the
    recipe and can print its Dockerfile, but does not build the image.
    """
    want: dict[str, str]
    """Component → constraint on its version."""
    horovod: HorovodWish = HorovodWish()
    mpi: MpiWish = MpiWish()

    @property
    def operations(self) -> tuple[Operation, ...]:
        """The operations that the recipe requests in Horovod; empty for a recipe without Horovod."""
        return self.horovod.operations if "horovod" in self.want else ()
