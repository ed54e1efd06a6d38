"""Choose one version of each component for a recipe, or report the constraints that contradict each other.

The solver chooses the newest combination that satisfies the recipe, the compatibility tables and the cluster,
if one is given. At least one launch mode must work on the given cluster. A better launch mode has precedence
over newer versions.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations

import msgspec

from toolkit.engine.predict import RANKING
from toolkit.engine.solver.constraints import (
    StackConstraint,
    constraints_of,
    demand_of,
    named_components,
    without,
)
from toolkit.engine.solver.fitting import as_sentences
from toolkit.engine.solver.search import ChosenRows, Pair, SearchProblem, Works, find_stack, order_rows
from toolkit.engine.solver.stack_prediction import Ways, predict_stack
from toolkit.engine.solver.why import why
from toolkit.knowledge.components import components, launch_components
from toolkit.knowledge.stacks import Stacks
from toolkit.model.facts import HostFacts
from toolkit.model.prediction import Mode, Request
from toolkit.model.recipe import Recipe
from toolkit.model.solution import Chosen, Component, Solution

_TWO_NODES = Request()
_FACTS = 8
"""Maximum number of facts in a report about contradicting constraints; further facts are usually similar."""


class Conflict(msgspec.Struct, frozen=True, kw_only=True):
    """Constraints that no stack satisfies together. If the user drops any one of the constraints, a stack
    exists.

    ``relax`` has one sentence for each constraint: the stack that is possible without the constraint.
    ``because`` lists the facts that cause the contradiction.
    """

    schema: str = "toolkit.conflict/1"
    recipe: str
    constraints: tuple[str, ...]
    relax: tuple[str, ...]
    because: tuple[str, ...] = ()


def solve_rows(
    recipe: Recipe,
    name: str,
    table: Stacks,
    host: HostFacts | None = None,
    request: Request = _TWO_NODES,
) -> tuple[Solution, ChosenRows] | Conflict:
    """Return the preferred stack of a recipe and its rows of ``stacks.toml``, or the reason why no stack
    exists.

    ``name`` is the recipe's name. If ``host`` is given, a job with the nodes and ranks of ``request`` must
    work on this host.
    """
    solver = _Solver(recipe, name, table, host, request)
    return solver.answer() or solver.conflict()


def solve(
    recipe: Recipe,
    name: str,
    table: Stacks,
    host: HostFacts | None = None,
    request: Request = _TWO_NODES,
) -> Solution | Conflict:
    """Return the result of :func:`solve_rows` without the rows."""
    found = solve_rows(recipe, name, table, host, request)
    return found if isinstance(found, Conflict) else found[0]


def find(
    recipe: Recipe,
    name: str,
    table: Stacks,
    host: HostFacts | None = None,
    request: Request = _TWO_NODES,
) -> Solution | None:
    """Return the result of :func:`solve`, or ``None`` if no stack exists. This function is faster than
    :func:`solve`, because it does not look for the reason why no stack exists.
    """
    found = _Solver(recipe, name, table, host, request).answer()
    return found[0] if found else None


class _Solver:
    """Solves one recipe with one table of component versions for one host, and caches the predictions for
    each stack.
    """

    def __init__(
        self, recipe: Recipe, name: str, table: Stacks, host: HostFacts | None, request: Request
    ) -> None:
        self.recipe, self.name, self.table, self.host, self.request = recipe, name, table, host, request
        self.asks = constraints_of(recipe, host)
        self.asked = named_components(recipe)
        self.book = order_rows(table)
        self.said: dict[tuple[str, ...], Ways] = {}

    def answer(self) -> tuple[Solution, ChosenRows] | None:
        if self.host is None or not {"openmpi", "mpich"} & set(self.recipe.want):
            found = find_stack(self.problem(self.asks))
            return (self.solution(found, None), found[1]) if found else None
        if not self.possible(self.asks):
            return None
        for mode in (*RANKING, "gloo"):
            if found := find_stack(self.problem(self.asks, self.works_by(mode))):
                return self.solution(found, mode), found[1]
        return None

    def problem(self, asks: tuple[StackConstraint, ...], works: Works | None = None) -> SearchProblem:
        return SearchProblem(self.book, demand_of(asks), self.asked, works or self.works)

    def predict_stack(self, architecture: str, taken: ChosenRows) -> Ways:
        """Return, for each launch mode, why the mode fails on the cluster with a stack; the text is empty if
        the mode works. The table is empty for a stack without MPI.
        """
        if self.host is None or not {"openmpi", "mpich"} & set(taken):
            return {}
        key = _key(architecture, taken, self.host)
        if key not in self.said:
            self.said[key] = predict_stack(
                self.host, self.table, architecture, taken, self.recipe.operations, self.request
            )
        return self.said[key]

    def works(self, architecture: str, taken: ChosenRows) -> bool:
        ways = self.predict_stack(architecture, taken)
        return not ways or not all(ways.values())

    def works_by(self, mode: Mode) -> Works:
        return lambda architecture, taken: self.predict_stack(architecture, taken).get(mode, "no MPI") == ""

    def solution(self, found: tuple[str, ChosenRows], mode: Mode | None) -> Solution:
        architecture, taken = found
        problem = self.problem(self.asks, self.works_by(mode) if mode else None)
        chosen = tuple(
            Chosen(
                component=component,
                version=taken[component].version,
                provider=taken[component].provider,
                why=why(component, problem, architecture, taken, self.recipe, mode),
                source=taken[component].source,
            )
            for component in components()
            if component in taken
        )
        return Solution(recipe=self.name, architecture=architecture, chosen=chosen, mode=mode)

    def conflict(self) -> Conflict:
        core = self.smallest(self.find_conflict(self.asks))
        return Conflict(
            recipe=self.name,
            constraints=tuple(ask.text for ask in core),
            relax=tuple(self.describe_relaxation(ask) for ask in core),
            because=(*self.troubles(core), *self.facts(core)),
        )

    def possible(self, asks: tuple[StackConstraint, ...]) -> bool:
        return find_stack(self.problem(asks)) is not None

    def find_conflict(self, asks: tuple[StackConstraint, ...]) -> tuple[StackConstraint, ...]:
        """Return constraints that contradict each other. If the user drops any one of these constraints, the
        other constraints have a solution.
        """
        core = asks
        for ask in asks:
            fewer = tuple(a for a in core if a is not ask)
            if not self.possible(fewer):
                core = fewer
        return core

    def smallest(self, core: tuple[StackConstraint, ...]) -> tuple[StackConstraint, ...]:
        """Return the smallest set of contradicting constraints; among sets of the same size, the set with the
        weakest constraints.
        """
        for size in range(1, len(core) + 1):
            for few in combinations(self.asks, size):
                if not self.possible(few):
                    return few
        return core

    def describe_relaxation(self, ask: StackConstraint) -> str:
        """Return a sentence about the stack that is possible without a constraint."""
        rest = without(self.asks, ask)
        found = find_stack(self.problem(rest))
        if found is None:
            others = "; ".join(a.text for a in self.find_conflict(rest))
            return f"without {ask.text}: still no solution, because of {others}"
        architecture, taken = found
        words = [
            f"{c} {taken[c].version}" for c in components() if c in taken and c not in {"base", "python"}
        ]
        return (
            f"without {ask.text}: {', '.join(words) or 'nothing'} on {taken['base'].version}, {architecture}"
        )

    def troubles(self, core: tuple[StackConstraint, ...]) -> Iterator[str]:
        """Yield, for each launch mode, why a stack fails on the cluster. The stack is the solver's choice for
        the recipe without the cluster.

        If no stack satisfies the recipe, the stack is the solver's choice for the constraints in ``core``
        without the cluster.
        """
        if not any(ask.cluster for ask in core):
            return
        wholes = (tuple(ask for ask in asks if not ask.cluster) for asks in (self.asks, core))
        found = next(filter(None, (find_stack(self.problem(whole)) for whole in wholes)), None)
        for mode, trouble in (self.predict_stack(*found) if found else {}).items():
            yield f"{mode}: {trouble}"

    def facts(self, core: tuple[StackConstraint, ...]) -> tuple[str, ...]:
        """Return the facts that cause the contradiction. If the solver ignored the conflicts that the facts
        describe, a stack would exist.

        If the cluster is a constraint, the result omits facts about pairs of components, because the
        predictions for the cluster are more useful to the user.
        """
        problem = self.problem(core)
        find_stack(problem)
        if problem.demand.cluster:
            return as_sentences(fact for fact, pair in problem.seen.items() if len(pair) == 1)[:_FACTS]
        tried: set[Pair] = set()
        while left := sorted({p for p in problem.seen.values() if len(p) > 1} - tried, key=sorted):
            tried.add(left[0])
            fewer = replace(problem, spared=problem.spared | {left[0]}, seen={})
            if find_stack(fewer) is None:
                problem = fewer
        single = any(ask.architecture for ask in core)
        return as_sentences(fact for fact, pair in problem.seen.items() if single or len(pair) > 1)[:_FACTS]


def _key(architecture: str, taken: ChosenRows, host: HostFacts) -> tuple[str, ...]:
    """Return the part of a stack that affects predictions for a cluster. If the host has no GPU driver, the
    CUDA version has no effect.
    """

    def seen(component: Component) -> str:
        if component not in taken:
            return ""
        row = taken[component]
        same = component == "cuda" and host.gpu_driver is None
        return "any" if same else f"{row.provider} {row.version}"

    return (architecture, *map(seen, launch_components()))
