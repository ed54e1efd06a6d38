"""The versions of a recipe: the solver's answer, or an error with the contradicting constraints."""

import msgspec

from toolkit.engine.solver.search import ChosenRows
from toolkit.engine.solver.solve import Conflict, solve_rows
from toolkit.errors import CheckFailed
from toolkit.image.locks.recipe import Named
from toolkit.knowledge.stacks import stacks
from toolkit.model.facts import HostFacts
from toolkit.model.recipe import MPIS, MpiWish, Recipe
from toolkit.model.solution import Solution


def solve_recipe(named: Named, host: HostFacts | None = None) -> Solution:
    """Return the stack of a recipe without its rows; see :func:`solve_recipe_rows`."""
    return solve_recipe_rows(named, host)[0]


def solve_recipe_rows(named: Named, host: HostFacts | None = None) -> tuple[Solution, ChosenRows]:
    """Return the stack of a recipe and its rows, for a cluster if its facts are given.

    Raises:
        CheckFailed: if no stack satisfies it, with the constraints that contradict each other.
    """
    found = solve_rows(named.recipe, named.name, stacks(), host)
    if isinstance(found, Conflict):
        raise refusal(found)
    return found


def pin_recipe(recipe: Recipe, solution: Solution) -> Recipe:
    """Return a recipe that gives the same stack without the cluster: its base and versions are pinned."""
    versions = solution.versions
    providers = {c.provider for c in solution.chosen if c.component in MPIS} - {"base", "published"}
    return msgspec.structs.replace(
        recipe,
        base=versions["base"],
        architecture=solution.architecture,
        want={name: version for name, version in versions.items() if name in recipe.want},
        mpi=msgspec.convert({"provider": next(iter(providers), "")}, MpiWish),
    )


def refusal(conflict: Conflict) -> CheckFailed:
    """Return a conflict as an error: the constraints, the reason, and the result of dropping each."""
    return CheckFailed(
        f"{conflict.recipe}: no stack satisfies all of these constraints: {'; '.join(conflict.constraints)}",
        detail=(*(f"because {fact}" for fact in conflict.because), *conflict.relax),
        fix="remove or change one of the constraints",
    )
