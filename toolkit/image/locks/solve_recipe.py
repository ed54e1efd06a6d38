"""Choose the version of each component of a recipe; if constraints contradict each other, raise an error."""

import msgspec

from toolkit.engine.solver.search import ChosenRows
from toolkit.engine.solver.solve import Conflict, solve_rows
from toolkit.errors import CheckFailed
from toolkit.image.locks.recipe import NamedRecipe
from toolkit.knowledge.stacks import stacks
from toolkit.model.facts import HostFacts
from toolkit.model.recipe import MPIS, MpiWish, Recipe
from toolkit.model.solution import Solution


def solve_recipe(named_recipe: NamedRecipe, host: HostFacts | None = None) -> Solution:
    """Return the versions that toolkit chooses for a recipe.

    If ``host`` (the facts of a cluster) is given, the chosen versions work on this cluster.
    """
    return solve_recipe_rows(named_recipe, host)[0]


def solve_recipe_rows(
    named_recipe: NamedRecipe, host: HostFacts | None = None
) -> tuple[Solution, ChosenRows]:
    """Return the versions that toolkit chooses for a recipe, and the row of ``stacks.toml`` for each version.

    If ``host`` (the facts of a cluster) is given, the chosen versions work on this cluster.

    Raises:
        CheckFailed: if no set of versions satisfies the recipe; the message lists the constraints that
            contradict each other.
    """
    solution = solve_rows(named_recipe.recipe, named_recipe.name, stacks(), host)
    if isinstance(solution, Conflict):
        raise refusal(solution)
    return solution


def pin_recipe(recipe: Recipe, solution: Solution) -> Recipe:
    """Return the recipe with the exact versions of ``solution`` in place of its constraints.

    If toolkit solves the returned recipe on any machine, it chooses the versions of ``solution`` again. It
    does not need the facts of a cluster.
    """
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
    """Return the error for constraints that no stack (set of versions) satisfies.

    The error lists the reasons and, for each constraint, the stack that is possible without this constraint.
    """
    return CheckFailed(
        f"{conflict.recipe}: no stack satisfies all of these constraints: {'; '.join(conflict.constraints)}",
        detail=(*(f"because {fact}" for fact in conflict.because), *conflict.relax),
        fix="remove or change one of the constraints",
    )
