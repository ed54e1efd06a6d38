"""Collect the packages, requirements and archives that the build of a stack needs (pure functions)."""

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
"""The compiled components in build order, each with the components that toolkit must build before it."""

HELPERS: tuple[Helper, ...] = get_args(Helper)

_TOOLCHAIN = ("python3", "python3-dev", "g++", "make", "cmake", "pkg-config")
"""The compilers, equal for all recipes, so that all builds share this layer; no image contains the layer."""

_ALWAYS = ("python3",)
_INSTALLER = ("pip", "setuptools<81", "wheel")
"""Version 81 of setuptools removed pkg_resources, which older build scripts need."""


class Ingredients(msgspec.Struct, frozen=True, kw_only=True):
    """The packages and archives that a resolver looks up.

    ``debian_build`` and ``debian_run`` are names of Debian packages. ``wheels``, ``packages`` and ``tools``
    are Python requirements; ``packages`` come from the recipe. ``compiled`` are the compiled components in
    build order. ``helpers`` are components whose archives the compilation also unpacks. ``indexes`` are the
    recipe's extra package indexes.
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
        """The components that are compiled from their source distributions on PyPI."""
        return tuple(c for c in self.compiled if self.rows[c].archive is None)


def ingredients(selection: Mapping[Component, Version], recipe: Recipe, table: Stacks) -> Ingredients:
    """Return the packages and archives that the chosen versions of a recipe need."""
    rows = {component: selection[component] for component in components() if component in selection}
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
    """Return whether a component is compiled or unpacked from an archive, and not installed as a package."""
    return row.archive is not None or row.provider == "source" or (row.provider == "pypi" and not row.wheels)


def _unique(*groups: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(word for group in groups for word in group))
