"""Choose one version of each component for a recipe, or report the constraints that contradict each other.

The solver chooses the newest combination that satisfies the recipe and the compatibility tables. If the user
names a cluster, at least one launch mode must work there. The solver then prefers a better launch mode to
newer versions.
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
    """Constraints of a recipe that no stack satisfies together. If the user drops any one of them, a stack
    satisfies the rest of them.

    ``relax`` has one sentence for each of these constraints. The sentence names the stack that the recipe
    gives without this constraint. If no such stack exists, the sentence names the constraints that still
    contradict each other. ``because`` lists the facts that cause the contradiction.
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
    """Return the preferred stack of a recipe and the stack's rows of ``stacks.toml``. If no stack exists,
    return the constraints that contradict each other.

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
    """Return the preferred stack of a recipe, or the constraints that contradict each other; see
    :func:`solve_rows`.
    """
    found = solve_rows(recipe, name, table, host, request)
    return found if isinstance(found, Conflict) else found[0]


def find(
    recipe: Recipe,
    name: str,
    table: Stacks,
    host: HostFacts | None = None,
    request: Request = _TWO_NODES,
) -> Solution | None:
    """Return the preferred stack of a recipe, or ``None`` if no stack exists.

    Without a stack, ``find`` is faster than :func:`solve`, because ``find`` does not look for the reason.
    """
    found = _Solver(recipe, name, table, host, request).answer()
    return found[0] if found else None


class _Solver:
    """The solver for one recipe, one table of component versions and at most one host. It caches the
    predictions for each stack.
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
        the mode works. Without a cluster, and for a stack without MPI, the dictionary is empty.
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
        """Return constraints among ``asks`` that contradict each other. If the user drops any one of the
        returned constraints, a stack satisfies the rest of them.
        """
        core = asks
        for ask in asks:
            fewer = tuple(a for a in core if a is not ask)
            if not self.possible(fewer):
                core = fewer
        return core

    def smallest(self, core: tuple[StackConstraint, ...]) -> tuple[StackConstraint, ...]:
        """Return the smallest set of constraints that contradict each other. Among sets of the same size, a
        set with ``tensorflow, any version`` precedes a set with ``tensorflow = "2.15.*"``.
        """
        for size in range(1, len(core) + 1):
            for few in combinations(self.asks, size):
                if not self.possible(few):
                    return few
        return core

    def describe_relaxation(self, ask: StackConstraint) -> str:
        """Return a sentence that names the stack that is possible without the constraint ``ask``, or the
        constraints that still contradict each other.
        """
        rest = without(self.asks, ask)
        found = find_stack(self.problem(rest))
        if found is None:
            others = "; ".join(a.text for a in self.find_conflict(rest))
            return f"without {ask.text}: still no solution, because these contradict each other: {others}"
        architecture, taken = found
        words = [
            f"{c} {taken[c].version}" for c in components() if c in taken and c not in {"base", "python"}
        ]
        return (
            f"without {ask.text}: {', '.join(words) or 'nothing'} on {taken['base'].version}, {architecture}"
        )

    def troubles(self, core: tuple[StackConstraint, ...]) -> Iterator[str]:
        """Yield, for each launch mode, why the preferred stack fails on the cluster. The preferred stack is
        the solver's choice for the recipe without the cluster.

        If no stack satisfies the recipe even without the cluster, the preferred stack is the solver's choice
        for the constraints in ``core`` without the cluster.
        """
        if not any(ask.cluster for ask in core):
            return
        wholes = (tuple(ask for ask in asks if not ask.cluster) for asks in (self.asks, core))
        found = next(filter(None, (find_stack(self.problem(whole)) for whole in wholes)), None)
        for mode, trouble in (self.predict_stack(*found) if found else {}).items():
            yield f"{mode}: {trouble}"

    def facts(self, core: tuple[StackConstraint, ...]) -> tuple[str, ...]:
        """Return the facts that cause the contradiction between the constraints in ``core``. Without these
        facts, a stack would exist.

        If the cluster is a constraint in ``core``, the result omits conflicts between two components. The
        predictions for the cluster are then more useful to the user.
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
    """Return the key of the cache of predictions: the architecture, and the version of each component that
    affects the launch. If the host has no GPU driver, the key does not contain the CUDA version.
    """

    def seen(component: Component) -> str:
        if component not in taken:
            return ""
        row = taken[component]
        same = component == "cuda" and host.gpu_driver is None
        return "any" if same else f"{row.provider} {row.version}"

    return (architecture, *map(seen, launch_components()))
