"""Collect the packages, Python requirements and archives that an image's build needs (pure functions)."""

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
"""The Debian packages with the compilers. All recipes use the same compiler packages, so all builds share
one layer with the compilers. Finished images do not contain this layer.
"""

_ALWAYS = ("python3",)
_INSTALLER = ("pip", "setuptools<81", "wheel")
"""The Python packages that install wheels. Older build scripts need pkg_resources, which setuptools 82
removed. The warning of pkg_resources recommends setuptools below 81.
"""


class Ingredients(msgspec.Struct, frozen=True, kw_only=True):
    """The packages and archives that toolkit looks up for a lock.

    ``rows`` are the chosen rows of ``stacks.toml``. ``debian_build`` and ``debian_run`` are the names of the
    Debian packages for the build and for the finished image. ``wheels``, ``packages`` and ``tools`` are
    Python requirements: ``wheels`` of the components, ``packages`` of the recipe, ``tools`` for compiling.
    ``compiled`` are the compiled components in build order. ``helpers`` are components that toolkit does not
    compile; the compile script of another component unpacks their archives. ``indexes`` are the package
    indexes that the recipe names.
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
        """The compiled components whose source code is a source distribution on PyPI."""
        return tuple(c for c in self.compiled if self.rows[c].archive is None)


def ingredients(selection: Mapping[Component, Version], recipe: Recipe, table: Stacks) -> Ingredients:
    """Return the packages and archives that a build needs, from the chosen row of ``stacks.toml`` for each
    component.
    """
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
    """Return whether toolkit compiles a component from source or unpacks its archive. If not, toolkit
    installs the component from packages.
    """
    return row.archive is not None or row.provider == "source" or (row.provider == "pypi" and not row.wheels)


def _unique(*groups: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(word for group in groups for word in group))
