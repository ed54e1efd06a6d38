"""A user's wishes for an image, as a file under ``recipes/`` states them."""

from typing import Literal, get_args

import msgspec

MPIS = ("openmpi", "mpich")
"""A recipe wants exactly one component of this list."""

MATCH_HOST = "match-host"
"""The wish that makes a version depend on the cluster."""

LONGEST_LINE = 300
"""The largest length of a title, and of the reason why an image cannot be built."""

Operation = Literal["mpi", "gloo", "nccl"]
OPERATIONS: tuple[Operation, ...] = get_args(Operation)


class _RecipeSection(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class HorovodWish(_RecipeSection, frozen=True, kw_only=True):
    """The ways in which Horovod moves tensors."""

    operations: tuple[Operation, ...] = ("mpi", "gloo")
    """The operations that are built into Horovod; ``nccl`` needs a recipe with CUDA."""


class MpiWish(_RecipeSection, frozen=True, kw_only=True):
    """Where the MPI comes from: the distribution's packages, a wheel, or a source archive; any by default."""

    provider: Literal["", "debian", "pypi", "source"] = ""
    """The distribution, PyPI, or a source archive with the flags that a Slurm site needs."""


class Recipe(_RecipeSection, frozen=True, kw_only=True):
    """One recipe: constraints, which the solver turns into versions.

    A wish is ``*``, ``2.15.*``, ``>=4.1,<5``, one version, or ``match-host``.
    """

    schema: Literal["toolkit.recipe/2"]
    """The schema of this file."""
    title: str
    """One line of description, which lists and image labels show."""
    base: str = ""
    """A distribution and its release, as in ``debian:bookworm`` or ``debian:*``; any by default."""
    architecture: str = "x86_64"
    """Processor that the image is for, as in ``uname -m``."""
    packages: tuple[str, ...] = ()
    """More packages for the image's Python, each pinned: ``name==version``."""
    indexes: tuple[str, ...] = ()
    """Further package indexes to search, as https addresses; pip's own configuration is honoured too."""
    unbuildable: str = ""
    """Why the image cannot be built everywhere; such a recipe is rendered and checked, not built."""
    want: dict[str, str]
    """Component → constraint."""
    horovod: HorovodWish = HorovodWish()
    mpi: MpiWish = MpiWish()

    @property
    def operations(self) -> tuple[Operation, ...]:
        """The ways in which Horovod moves tensors; empty if the recipe wants no Horovod."""
        return self.horovod.operations if "horovod" in self.want else ()
