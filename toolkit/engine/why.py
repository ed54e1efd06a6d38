"""Say in one sentence why a version was taken: what asked for it, and what kept newer ones out; pure."""

from dataclasses import replace

from toolkit.engine.search import Problem, Taken, first, fits, objection, preferred, spoken
from toolkit.knowledge.stacks import Version
from toolkit.model.prediction import Mode
from toolkit.model.recipe import MATCH_HOST, Recipe
from toolkit.model.solution import Component


def why(component: Component, problem: Problem, taken: Taken, recipe: Recipe, mode: Mode | None) -> str:
    """Return the sentence for one component of a stack that was found."""
    asked = _asked(component, taken, recipe, mode)
    kept = _kept_out(component, problem, taken)
    return f"{asked}; {kept}" if kept else asked


def _asked(component: Component, taken: Taken, recipe: Recipe, mode: Mode | None) -> str:
    wish = recipe.base if component == "base" else recipe.want.get(component, "")
    if wish == MATCH_HOST:
        return f"{mode} works with it on this cluster" if mode else "no cluster was given, so any would do"
    if wish:
        return "the recipe wants any" if wish == "*" else f"the recipe wants {wish}"
    if component in {"nccl", "cuda"} and "nccl" in recipe.operations:
        return "Horovod is to use NCCL"
    needing = [spoken(c, row.version) for c, row in taken.items() if component in row.requires]
    if component == "python" and "base" in taken:
        return f"{taken['base'].version} has it"
    if component == "base":
        return "the recipe leaves it open"
    return f"{' and '.join(needing)} {'needs' if len(needing) == 1 else 'need'} it"


def _kept_out(component: Component, problem: Problem, taken: Taken) -> str:
    """Return what kept the row out that would have been taken first; empty text if it was taken."""
    rows = preferred(problem.table, component)
    better = rows[: rows.index(taken[component])]
    wishes = (
        problem.demand.base
        if component == "base"
        else [w for c, w in problem.demand.bounds if c == component]
    )
    open_to = [r for r in better if all(fits(component, r.version, w) for w in wishes)]
    open_to = [r for r in open_to if not (r.asked and component not in problem.asked)]
    if not open_to:
        return "the newest of these" if better and component != "base" else ""
    row = open_to[0]
    return f"{row.version} is kept out: {_reason(component, row, problem, taken)}"


def _reason(component: Component, row: Version, problem: Problem, taken: Taken) -> str:
    for other, its in taken.items():
        if other != component and (said := objection(component, row, other, its)):
            return said
    pinned = replace(problem.demand, bounds=(*problem.demand.bounds, (component, row.version)))
    tried = replace(problem, demand=pinned, seen={})
    if component != "base" and first(tried) is None and tried.seen:
        return next(iter(tried.seen))
    return "what is chosen before it goes with the other"
