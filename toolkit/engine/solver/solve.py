"""Choose one version of each component for a recipe, or report the constraints that contradict each other.

The solver chooses the newest combination that satisfies the recipe and the compatibility tables. If the user
names a cluster, at least one launch mode must work there. In this case, a better launch mode matters more
than newer versions.
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
    """Return the preferred stack of a recipe, and the rows of ``stacks.toml`` in this stack. If no stack
    exists, return the constraints that contradict each other.

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

    If no stack exists, ``find`` is faster than :func:`solve`, because ``find`` does not look for the reason.
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
        self.constraints = constraints_of(recipe, host)
        self.named_components = named_components(recipe)
        self.book = order_rows(table)
        self.predictions: dict[tuple[str, ...], Ways] = {}

    def answer(self) -> tuple[Solution, ChosenRows] | None:
        if self.host is None or not {"openmpi", "mpich"} & set(self.recipe.want):
            found = find_stack(self.problem(self.constraints))
            return (self.solution(found, None), found[1]) if found else None
        if not self.possible(self.constraints):
            return None
        for mode in (*RANKING, "gloo"):
            if found := find_stack(self.problem(self.constraints, self.works_by(mode))):
                return self.solution(found, mode), found[1]
        return None

    def problem(self, constraints: tuple[StackConstraint, ...], works: Works | None = None) -> SearchProblem:
        return SearchProblem(self.book, demand_of(constraints), self.named_components, works or self.works)

    def predict_stack(self, architecture: str, stack: ChosenRows) -> Ways:
        """Return, for each launch mode, why the mode fails on the cluster with a stack; the text is empty if
        the mode works. Without a cluster, and for a stack without MPI, the dictionary is empty.
        """
        if self.host is None or not {"openmpi", "mpich"} & set(stack):
            return {}
        key = _key(architecture, stack, self.host)
        if key not in self.predictions:
            self.predictions[key] = predict_stack(
                self.host, self.table, architecture, stack, self.recipe.operations, self.request
            )
        return self.predictions[key]

    def works(self, architecture: str, stack: ChosenRows) -> bool:
        ways = self.predict_stack(architecture, stack)
        return not ways or not all(ways.values())

    def works_by(self, mode: Mode) -> Works:
        return lambda architecture, stack: self.predict_stack(architecture, stack).get(mode, "no MPI") == ""

    def solution(self, result: tuple[str, ChosenRows], mode: Mode | None) -> Solution:
        architecture, stack = result
        problem = self.problem(self.constraints, self.works_by(mode) if mode else None)
        chosen = tuple(
            Chosen(
                component=component,
                version=stack[component].version,
                provider=stack[component].provider,
                why=why(component, problem, architecture, stack, self.recipe, mode),
                source=stack[component].source,
            )
            for component in components()
            if component in stack
        )
        return Solution(recipe=self.name, architecture=architecture, chosen=chosen, mode=mode)

    def conflict(self) -> Conflict:
        core = self.smallest(self.find_conflict(self.constraints))
        return Conflict(
            recipe=self.name,
            constraints=tuple(c.text for c in core),
            relax=tuple(self.describe_relaxation(c) for c in core),
            because=(*self.troubles(core), *self.facts(core)),
        )

    def possible(self, constraints: tuple[StackConstraint, ...]) -> bool:
        return find_stack(self.problem(constraints)) is not None

    def find_conflict(self, constraints: tuple[StackConstraint, ...]) -> tuple[StackConstraint, ...]:
        """Return the constraints that contradict each other. If the user drops any one of the returned
        constraints, a stack satisfies the rest of them.
        """
        core = constraints
        for constraint in constraints:
            fewer = tuple(a for a in core if a is not constraint)
            if not self.possible(fewer):
                core = fewer
        return core

    def smallest(self, core: tuple[StackConstraint, ...]) -> tuple[StackConstraint, ...]:
        """Return the smallest set of constraints that contradict each other. Among sets of the same size, a
        set with ``tensorflow, any version`` precedes a set with ``tensorflow = "2.15.*"``.
        """
        for size in range(1, len(core) + 1):
            for few in combinations(self.constraints, size):
                if not self.possible(few):
                    return few
        return core

    def describe_relaxation(self, constraint: StackConstraint) -> str:
        """Return a sentence that names the stack that is possible without one constraint, or the constraints
        that still contradict each other.
        """
        rest = without(self.constraints, constraint)
        found = find_stack(self.problem(rest))
        if found is None:
            others = "; ".join(a.text for a in self.find_conflict(rest))
            return (
                f"without {constraint.text}: still no solution, because these contradict each other: {others}"
            )
        architecture, stack = found
        words = [
            f"{c} {stack[c].version}" for c in components() if c in stack and c not in {"base", "python"}
        ]
        base = stack["base"].version
        return f"without {constraint.text}: {', '.join(words) or 'nothing'} on {base}, {architecture}"

    def troubles(self, core: tuple[StackConstraint, ...]) -> Iterator[str]:
        """Yield, for each launch mode, why the preferred stack fails on the cluster. The preferred stack is
        the solver's choice for the recipe without the cluster.

        ``core`` has the constraints that contradict each other. If no stack satisfies the recipe even without
        the cluster, the solver instead chooses a stack for the constraints in ``core``, without the cluster.
        """
        if not any(c.cluster for c in core):
            return
        wholes = (tuple(c for c in constraints if not c.cluster) for constraints in (self.constraints, core))
        found = next(filter(None, (find_stack(self.problem(whole)) for whole in wholes)), None)
        for mode, trouble in (self.predict_stack(*found) if found else {}).items():
            yield f"{mode}: {trouble}"

    def facts(self, core: tuple[StackConstraint, ...]) -> tuple[str, ...]:
        """Return the facts that cause the contradiction between the constraints in ``core``. Without these
        facts, a stack would exist.

        If the cluster is a constraint in ``core``, the result omits conflicts between two components, because
        :meth:`troubles` already tells the user why each launch mode fails.
        """
        problem = self.problem(core)
        find_stack(problem)
        if problem.demand.cluster:
            return as_sentences(fact for fact, pair in problem.conflicts.items() if len(pair) == 1)[:_FACTS]
        tried: set[Pair] = set()
        while left := sorted({p for p in problem.conflicts.values() if len(p) > 1} - tried, key=sorted):
            tried.add(left[0])
            fewer = replace(problem, ignored_pairs=problem.ignored_pairs | {left[0]}, conflicts={})
            if find_stack(fewer) is None:
                problem = fewer
        single = any(c.architecture for c in core)
        facts = (fact for fact, pair in problem.conflicts.items() if single or len(pair) > 1)
        return as_sentences(facts)[:_FACTS]


def _key(architecture: str, stack: ChosenRows, host: HostFacts) -> tuple[str, ...]:
    """Return the key of the cache of predictions: the architecture, and the version of each component that
    affects the launch. If the host has no GPU driver, the key does not contain the CUDA version.
    """

    def seen(component: Component) -> str:
        if component not in stack:
            return ""
        row = stack[component]
        same = component == "cuda" and host.gpu_driver is None
        return "any" if same else f"{row.provider} {row.version}"

    return (architecture, *map(seen, launch_components()))
