"""The versions of a recipe: the solver's answer, or an error that says what contradicts what."""

from toolkit.engine.solve import Conflict, solve
from toolkit.errors import CheckFailed
from toolkit.image.recipe import Named
from toolkit.knowledge.stacks import stacks
from toolkit.model.facts import HostFacts
from toolkit.model.solution import Solution


def solved(named: Named, host: HostFacts | None = None) -> Solution:
    """Return the stack of a recipe, on a cluster if its facts are given.

    Raises:
        CheckFailed: if no stack satisfies it, with the constraints that contradict each other.
    """
    found = solve(named.recipe, named.name, stacks(), host)
    if isinstance(found, Conflict):
        raise refusal(found)
    return found


def refusal(conflict: Conflict) -> CheckFailed:
    """Return a conflict as an error: the constraints, what stands between them, what dropping each gives."""
    detail = [*(f"  {fact}" for fact in conflict.because), *conflict.relax]
    return CheckFailed(
        f"{conflict.recipe}: no stack satisfies all of: {'; '.join(conflict.constraints)}",
        detail=detail,
        fix="change one of these constraints",
    )
