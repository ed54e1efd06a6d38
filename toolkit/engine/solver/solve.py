"""Choose one version of every component for a recipe, or say what contradicts what; pure.

The newest combination wins that satisfies the recipe, the knowledge and, if there is one, the cluster: some
way of launching has to work there, and a better way goes before a newer version.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations

import msgspec

from toolkit.engine.predict import RANKING
from toolkit.engine.solver.asks import Ask, asked_for, asks_of, demand_of, without
from toolkit.engine.solver.fitting import told
from toolkit.engine.solver.foreseen import Ways, ways
from toolkit.engine.solver.search import Pair, SearchProblem, Taken, Works, first, ordered
from toolkit.engine.solver.why import why
from toolkit.knowledge.components import components, launch_components
from toolkit.knowledge.stacks import Stacks
from toolkit.model.facts import HostFacts
from toolkit.model.prediction import Mode, Request
from toolkit.model.recipe import Recipe
from toolkit.model.solution import Chosen, Component, Solution

_TWO_NODES = Request()
_FACTS = 8
"""As many facts as a person reads; more are of the same kind."""


class Conflict(msgspec.Struct, frozen=True, kw_only=True):
    """Nothing satisfies these constraints together; without any one of them, something does.

    ``relax`` has one sentence for each: what dropping it from the recipe would give. ``because`` are the
    facts that stand between them.
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
) -> tuple[Solution, Taken] | Conflict:
    """Return the preferred stack of a recipe and its rows of the table, or why there is no stack.

    ``name`` is the recipe's. With ``host``, a job of the shape ``request`` has to start there.
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
    """Return what :func:`solve_rows` does, without the rows."""
    found = solve_rows(recipe, name, table, host, request)
    return found if isinstance(found, Conflict) else found[0]


def find(
    recipe: Recipe,
    name: str,
    table: Stacks,
    host: HostFacts | None = None,
    request: Request = _TWO_NODES,
) -> Solution | None:
    """Return what :func:`solve` does, and do without the reason where there is no stack."""
    found = _Solver(recipe, name, table, host, request).answer()
    return found[0] if found else None


class _Solver:
    """One recipe, one table and one host; what the cluster said of a stack is kept."""

    def __init__(
        self, recipe: Recipe, name: str, table: Stacks, host: HostFacts | None, request: Request
    ) -> None:
        self.recipe, self.name, self.table, self.host, self.request = recipe, name, table, host, request
        self.asks = asks_of(recipe, host)
        self.asked = asked_for(recipe)
        self.book = ordered(table)
        self.said: dict[tuple[str, ...], Ways] = {}

    def answer(self) -> tuple[Solution, Taken] | None:
        if self.host is None or not {"openmpi", "mpich"} & set(self.recipe.want):
            found = first(self.problem(self.asks))
            return (self.solution(found, None), found[1]) if found else None
        if not self.possible(self.asks):
            return None
        for mode in (*RANKING, "gloo"):
            if found := first(self.problem(self.asks, self.works_by(mode))):
                return self.solution(found, mode), found[1]
        return None

    def problem(self, asks: tuple[Ask, ...], works: Works | None = None) -> SearchProblem:
        return SearchProblem(self.book, demand_of(asks), self.asked, works or self.works)

    def ways(self, architecture: str, taken: Taken) -> Ways:
        """Return what the cluster would do with a stack; nothing is known of one without an MPI."""
        if self.host is None or not {"openmpi", "mpich"} & set(taken):
            return {}
        key = _key(architecture, taken, self.host)
        if key not in self.said:
            self.said[key] = ways(
                self.host, self.table, architecture, taken, self.recipe.operations, self.request
            )
        return self.said[key]

    def works(self, architecture: str, taken: Taken) -> bool:
        ways = self.ways(architecture, taken)
        return not ways or not all(ways.values())

    def works_by(self, mode: Mode) -> Works:
        return lambda architecture, taken: self.ways(architecture, taken).get(mode, "no MPI") == ""

    def solution(self, found: tuple[str, Taken], mode: Mode | None) -> Solution:
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
        core = self.smallest(self.minimal(self.asks))
        return Conflict(
            recipe=self.name,
            constraints=tuple(ask.text for ask in core),
            relax=tuple(self.relaxed(ask) for ask in core),
            because=(*self.troubles(core), *self.facts(core)),
        )

    def possible(self, asks: tuple[Ask, ...]) -> bool:
        return first(self.problem(asks)) is not None

    def minimal(self, asks: tuple[Ask, ...]) -> tuple[Ask, ...]:
        """Return constraints that contradict each other, of which none can be spared."""
        core = asks
        for ask in asks:
            fewer = tuple(a for a in core if a is not ask)
            if not self.possible(fewer):
                core = fewer
        return core

    def smallest(self, core: tuple[Ask, ...]) -> tuple[Ask, ...]:
        """Return the smallest set of all that contradict each other; of equal size, what is weakest first."""
        for size in range(1, len(core) + 1):
            for few in combinations(self.asks, size):
                if not self.possible(few):
                    return few
        return core

    def relaxed(self, ask: Ask) -> str:
        """Say what dropping a constraint from the recipe would give."""
        rest = without(self.asks, ask)
        found = first(self.problem(rest))
        if found is None:
            others = "; ".join(a.text for a in self.minimal(rest))
            return f"without {ask.text}: still nothing, because of {others}"
        architecture, taken = found
        words = [
            f"{c} {taken[c].version}" for c in components() if c in taken and c not in {"base", "python"}
        ]
        return (
            f"without {ask.text}: {', '.join(words) or 'nothing'} on {taken['base'].version}, {architecture}"
        )

    def troubles(self, core: tuple[Ask, ...]) -> Iterator[str]:
        """Yield why the cluster refuses the stack that would be taken without it.

        That is the stack of the whole recipe; of the core, if the recipe contradicts itself.
        """
        if not any(ask.cluster for ask in core):
            return
        wholes = (tuple(ask for ask in asks if not ask.cluster) for asks in (self.asks, core))
        found = next(filter(None, (first(self.problem(whole)) for whole in wholes)), None)
        for mode, trouble in (self.ways(*found) if found else {}).items():
            yield f"{mode}: {trouble}"

    def facts(self, core: tuple[Ask, ...]) -> tuple[str, ...]:
        """Return the facts between constraints: those of pairs without which there would be no contradiction.

        Where the cluster is among the constraints, what it says of the stack tells more than pairs do.
        """
        problem = self.problem(core)
        first(problem)
        if problem.demand.cluster:
            return told(fact for fact, pair in problem.seen.items() if len(pair) == 1)[:_FACTS]
        tried: set[Pair] = set()
        while left := sorted({p for p in problem.seen.values() if len(p) > 1} - tried, key=sorted):
            tried.add(left[0])
            fewer = replace(problem, spared=problem.spared | {left[0]}, seen={})
            if first(fewer) is None:
                problem = fewer
        single = any(ask.architecture for ask in core)
        return told(fact for fact, pair in problem.seen.items() if single or len(pair) > 1)[:_FACTS]


def _key(architecture: str, taken: Taken, host: HostFacts) -> tuple[str, ...]:
    """Return what a cluster looks at in a stack: without a driver, any CUDA is as good as another."""

    def seen(component: Component) -> str:
        if component not in taken:
            return ""
        row = taken[component]
        same = component == "cuda" and host.gpu_driver is None
        return "any" if same else f"{row.provider} {row.version}"

    return (architecture, *map(seen, launch_components()))
