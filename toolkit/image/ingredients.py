"""What a solution takes to build: packages, requirements, archives, and what is compiled after what; pure."""

from collections.abc import Iterable

import msgspec

from toolkit.engine.fitting import fits
from toolkit.errors import BadInput
from toolkit.knowledge.stacks import Base, Stacks, Version
from toolkit.model.recipe import Recipe
from toolkit.model.solution import Chosen, Component, Solution

COMPILED: dict[Component, tuple[Component, ...]] = {
    "ucx": (),
    "pmix": (),
    "nccl": (),
    "cuda": (),
    "openmpi": ("ucx", "pmix"),
    "mpich": ("ucx", "pmix"),
    "mpi4py": ("ucx", "pmix", "openmpi", "mpich"),
    "horovod": ("ucx", "pmix", "nccl", "openmpi", "mpich"),
}
"""What can be compiled, in an order that works, and what of it has to be there before."""

_TOOLCHAIN = ("python3", "python3-dev", "g++", "make", "cmake", "pkg-config")
"""The same for all recipes, so that they share the layer, which does not end up in any image."""

_ALWAYS = ("python3",)
_INSTALLER = ("pip", "setuptools<81", "wheel")
"""With setuptools 81 went pkg_resources, which build scripts of those years ask for."""


class Ingredients(msgspec.Struct, frozen=True, kw_only=True):
    """The words that a resolver is asked with.

    ``debian_build`` and ``debian_run`` are package names; ``wheels``, ``packages`` (the recipe's own) and
    ``tools`` requirements of Python; ``compiled`` the components that are compiled, in order.
    """

    base: Base
    rows: dict[Component, Version]
    debian_build: tuple[str, ...]
    debian_run: tuple[str, ...]
    wheels: tuple[str, ...]
    packages: tuple[str, ...]
    tools: tuple[str, ...]
    compiled: tuple[Component, ...]

    @property
    def sdists(self) -> tuple[Component, ...]:
        """Components that are compiled from their source distribution on PyPI."""
        return tuple(c for c in self.compiled if self.rows[c].archive is None)


def ingredients(solution: Solution, recipe: Recipe, table: Stacks) -> Ingredients:
    """Return what a solution takes.

    Raises:
        BadInput: if the table has no row for what was chosen, as it has been edited since.
    """
    rows = {chosen.component: row_of(chosen, solution, table) for chosen in solution.chosen}
    built = [row for component, row in rows.items() if component not in {"base", "python"}]
    return Ingredients(
        base=table.base_of(rows["base"].version),
        rows=rows,
        debian_build=_unique(_TOOLCHAIN, *(row.debian.build for row in built)),
        debian_run=_unique(_ALWAYS, *(row.debian.run for row in built)),
        wheels=_unique(*(row.wheels for row in built)),
        packages=recipe.packages,
        tools=_unique(_INSTALLER, *(row.tools for row in built)),
        compiled=tuple(c for c in COMPILED if c in rows and is_compiled(rows[c])),
    )


def row_of(chosen: Chosen, solution: Solution, table: Stacks) -> Version:
    """Return the row that a component of a solution was taken from.

    Raises:
        BadInput: if there is none.
    """
    for row in table.rows(chosen.component):
        if (row.version, row.provider) == (chosen.version, chosen.provider) and _goes(row, solution):
            return row
    raise BadInput(
        f"recipes/knowledge/stacks.toml: no row is {chosen.component} {chosen.version} ({chosen.provider}) "
        f"for the stack of {solution.recipe}",
        fix=f"toolkit image lock {solution.recipe} --upgrade",
    )


def is_compiled(row: Version) -> bool:
    """Tell whether a row is compiled, or laid out from an archive, and not installed as it comes."""
    return row.archive is not None or row.provider == "source" or (row.provider == "pypi" and not row.wheels)


def _goes(row: Version, solution: Solution) -> bool:
    taken = {c.component: Version(version=c.version, provider=c.provider, source="") for c in solution.chosen}
    required = all(c in taken and fits(c, taken[c], wish) for c, wish in row.requires.items())
    fitting = all(c not in taken or fits(c, taken[c], wish) for c, wish in row.fits.items())
    fine = not row.architectures or solution.architecture in row.architectures
    return required and fitting and fine and not set(row.without) & set(taken)


def _unique(*groups: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(word for group in groups for word in group))
