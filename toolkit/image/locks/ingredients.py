"""What the rows of a stack need to build: packages, requirements and archives (pure)."""

from collections.abc import Iterable, Mapping
from typing import get_args

import msgspec

from toolkit.knowledge.components import components
from toolkit.knowledge.stacks import Base, Stacks, Version
from toolkit.model.lock import CompiledComponent, Helper
from toolkit.model.recipe import Recipe
from toolkit.model.solution import Component

AFTER: dict[CompiledComponent, tuple[CompiledComponent, ...]] = {
    "ucx": (),
    "pmix": (),
    "openmpi": ("ucx", "pmix"),
    "mpi4py": ("ucx", "pmix", "openmpi"),
    "horovod": ("ucx", "pmix", "openmpi"),
}
"""The compiled components in a working order, and the components that must be built before each."""

HELPERS: tuple[Helper, ...] = get_args(Helper)

_TOOLCHAIN = ("python3", "python3-dev", "g++", "make", "cmake", "pkg-config")
"""Equal for all recipes, so that they share the layer; no image contains this layer."""

_ALWAYS = ("python3",)
_INSTALLER = ("pip", "setuptools<81", "wheel")
"""setuptools 81 removed pkg_resources, which older build scripts need."""


class Ingredients(msgspec.Struct, frozen=True, kw_only=True):
    """The arguments for a resolver.

    ``debian_build`` and ``debian_run`` are package names; ``wheels``, ``packages`` (the recipe's own) and
    ``tools`` requirements of Python; ``compiled`` the components that are compiled, in order, ``helpers`` the
    archives that these unpack besides their own. ``indexes`` are the further indexes that the recipe names.
    """

    base: Base
    rows: dict[Component, Version]
    debian_build: tuple[str, ...]
    debian_run: tuple[str, ...]
    wheels: tuple[str, ...]
    packages: tuple[str, ...]
    tools: tuple[str, ...]
    compiled: tuple[CompiledComponent, ...]
    helpers: tuple[Helper, ...]
    indexes: tuple[str, ...] = ()

    @property
    def sdists(self) -> tuple[CompiledComponent, ...]:
        """Components that are compiled from their source distribution on PyPI."""
        return tuple(c for c in self.compiled if self.rows[c].archive is None)


def ingredients(taken: Mapping[Component, Version], recipe: Recipe, table: Stacks) -> Ingredients:
    """Return what the chosen rows of a recipe need."""
    rows = {component: taken[component] for component in components() if component in taken}
    built = [row for component, row in rows.items() if component not in {"base", "python"}]
    return Ingredients(
        base=table.base_of(rows["base"].version),
        rows=rows,
        debian_build=_unique(_TOOLCHAIN, *(row.debian.build for row in built)),
        debian_run=_unique(_ALWAYS, *(row.debian.run for row in built)),
        wheels=_unique(*(row.wheels for row in built)),
        packages=recipe.packages,
        indexes=recipe.indexes,
        tools=_unique(_INSTALLER, *(row.tools for row in built)),
        compiled=tuple(c for c in AFTER if c in rows and _is_compiled(rows[c])),
        helpers=tuple(c for c in HELPERS if c in rows and _is_compiled(rows[c])),
    )


def _is_compiled(row: Version) -> bool:
    """Return whether a row is compiled, or unpacked from an archive, instead of installed as it is."""
    return row.archive is not None or row.provider == "source" or (row.provider == "pypi" and not row.wheels)


def _unique(*groups: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(word for group in groups for word in group))
