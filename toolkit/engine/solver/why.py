"""Explain why the solver chose a version of a component.

The explanation says why the image needs the component, and which fact excludes a newer version.
"""

from dataclasses import replace

from toolkit.engine.solver.fitting import name_version, objection, only_for
from toolkit.engine.solver.search import ChosenRows, SearchProblem, find_stack, matches_demand
from toolkit.knowledge.components import solving_order
from toolkit.knowledge.stacks import Version
from toolkit.model.prediction import Mode
from toolkit.model.recipe import MATCH_HOST, Recipe
from toolkit.model.solution import Component


def why(
    component: Component,
    problem: SearchProblem,
    architecture: str,
    stack: ChosenRows,
    recipe: Recipe,
    mode: Mode | None = None,
) -> str:
    """Return why the image contains ``component`` in the version that the solver chose.

    ``stack`` has the rows that the solver chose. ``mode`` is the launch mode that works with this stack on
    the cluster. ``mode`` is ``None`` without a cluster, or if the recipe does not name an MPI.
    """
    asked = _origin(component, stack, recipe, mode)
    kept = _kept_out(component, problem, architecture, stack, mode)
    return f"{asked}; {kept}" if kept else asked


def _origin(component: Component, stack: ChosenRows, recipe: Recipe, mode: Mode | None) -> str:
    wish = recipe.base if component == "base" else recipe.want.get(component, "")
    if wish == MATCH_HOST:
        return (
            f"{mode} works with it on this cluster" if mode else "no cluster is given, so every version fits"
        )
    if wish:
        return "the recipe wants it" if wish == "*" else f"the recipe wants {wish}"
    if component in {"nccl", "cuda"} and "nccl" in recipe.operations:
        return "the recipe builds Horovod with NCCL"
    if component == "base":
        return "the recipe does not choose a version"
    if component == "python":
        return f"{stack['base'].version} has it"
    needing = [name_version(c, row.version) for c, row in stack.items() if component in row.requires]
    return f"{' and '.join(needing)} {'needs' if len(needing) == 1 else 'need'} it"


def _kept_out(
    component: Component, problem: SearchProblem, architecture: str, stack: ChosenRows, mode: Mode | None
) -> str:
    """Return why the solver did not choose a version that comes before the chosen version in the order of
    preference. If the constraints allow no such version, return ``the newest version that fits``. For a
    base image, or if the chosen version is the first in the order, return an empty text instead.
    """
    rows, row = problem.book.rows[component], stack[component]
    before = rows[: rows.index(row)]
    better = [r for r in before if (r.version, r.provider) != (row.version, row.provider)]
    better = [r for r in better if matches_demand(problem, component, r)]
    if not better:
        return "the newest version that fits" if before and component != "base" else ""
    forbidden = (r for r in better if mode and _only_the_cluster_forbids(component, r, problem, stack))
    told = next(forbidden, better[0])
    named = told.version if told.version != row.version else f"{told.version} from {told.provider}"
    return f"not {named}, as {_reason(component, told, problem, architecture, stack, mode)}"


def _reason(
    component: Component,
    row: Version,
    problem: SearchProblem,
    architecture: str,
    stack: ChosenRows,
    mode: Mode | None,
) -> str:
    if row.architectures and architecture not in row.architectures:
        return str(only_for(component, row))
    if mode and _only_the_cluster_forbids(component, row, problem, stack):
        return f"{mode} would not work with it"
    for other, other_row in stack.items():
        if other != component and (said := objection(component, row, other, other_row)):
            return str(said)
    tried = _with(component, row, problem, {})
    if component != "base" and find_stack(tried) is None and tried.conflicts:
        return str(next(iter(tried.conflicts)))
    return "another component would then need an older version"


def _only_the_cluster_forbids(
    component: Component, row: Version, problem: SearchProblem, stack: ChosenRows
) -> bool:
    """Return whether a version of a component is impossible only because of the cluster. Components that come
    before ``component`` in the solver's fixed order keep their versions from ``stack``.
    """
    order = solving_order()
    before = {c: stack[c] for c in order[: order.index(component)] if c in stack}
    tried = _with(component, row, problem, before)
    elsewhere = replace(tried, demand=replace(tried.demand, cluster=False))
    return find_stack(tried) is None and find_stack(elsewhere) is not None


def _with(component: Component, row: Version, problem: SearchProblem, rows: ChosenRows) -> SearchProblem:
    """Return the search problem with more constraints: ``component`` has the version of ``row``, and each
    component in ``rows`` has the version of the component's row.
    """
    given = {**rows, component: row}
    bounds = [(c, f"{r.provider} {r.version}") for c, r in given.items() if c != "base"]
    base = (given["base"].version,) if "base" in given else ()
    demand = replace(
        problem.demand,
        bounds=(*problem.demand.bounds, *bounds),
        base=(*problem.demand.base, *base),
    )
    return replace(problem, demand=demand, conflicts={})
