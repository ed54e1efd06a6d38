"""Say in one sentence why a version was taken: what asked for it, and what kept newer ones out; pure."""

from dataclasses import replace

from toolkit.engine.fitting import objection, only_for, spoken
from toolkit.engine.search import Problem, Taken, first, wanted
from toolkit.knowledge.stacks import Version
from toolkit.model.prediction import Mode
from toolkit.model.recipe import MATCH_HOST, Recipe
from toolkit.model.solution import Component


def why(
    component: Component,
    problem: Problem,
    architecture: str,
    taken: Taken,
    recipe: Recipe,
    mode: Mode | None = None,
) -> str:
    """Return the sentence for one component of a stack that was found; ``mode`` works with it."""
    asked = _asked(component, taken, recipe, mode)
    kept = _kept_out(component, problem, architecture, taken)
    return f"{asked}; {kept}" if kept else asked


def _asked(component: Component, taken: Taken, recipe: Recipe, mode: Mode | None) -> str:
    wish = recipe.base if component == "base" else recipe.want.get(component, "")
    if wish == MATCH_HOST:
        return f"{mode} works with it on this cluster" if mode else "no cluster was given, so any will do"
    if wish:
        return "the recipe wants it" if wish == "*" else f"the recipe wants {wish}"
    if component in {"nccl", "cuda"} and "nccl" in recipe.operations:
        return "Horovod is to use NCCL"
    if component == "base":
        return "the recipe leaves it open"
    if component == "python":
        return f"{taken['base'].version} has it"
    needing = [spoken(c, row.version) for c, row in taken.items() if component in row.requires]
    return f"{' and '.join(needing)} {'needs' if len(needing) == 1 else 'need'} it"


def _kept_out(component: Component, problem: Problem, architecture: str, taken: Taken) -> str:
    """Return what kept the row out that would have been taken first; empty text if it was taken."""
    rows, row = problem.book.rows[component], taken[component]
    before = rows[: rows.index(row)]
    better = [r for r in before if (r.version, r.provider) != (row.version, row.provider)]
    better = [r for r in better if wanted(problem, component, r)]
    if not better:
        return "the newest of these" if before and component != "base" else ""
    named = better[0].version
    if named == row.version:
        named += f" from {better[0].provider}"
    return f"not {named}, as {_reason(component, better[0], problem, architecture, taken)}"


def _reason(component: Component, row: Version, problem: Problem, architecture: str, taken: Taken) -> str:
    if row.architectures and architecture not in row.architectures:
        return str(only_for(component, row))
    for other, its in taken.items():
        if other != component and (said := objection(component, row, other, its)):
            return str(said)
    pinned = replace(problem.demand, bounds=(*problem.demand.bounds, (component, row.version)))
    tried = replace(problem, demand=pinned, seen={})
    if component != "base" and first(tried) is None and tried.seen:
        return str(next(iter(tried.seen)))
    return "what stands before it in importance would be older then"
