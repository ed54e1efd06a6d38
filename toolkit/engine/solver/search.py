"""Find the newest stack that satisfies every constraint: plain backtracking over rows; pure.

Components are decided in a fixed order, each from its preferred row down, so the first stack that is
complete is the preferred one: newest TensorFlow first, then newest Horovod, and so on.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from packaging.version import Version as Number

from toolkit.engine.solver.asks import Demand
from toolkit.engine.solver.fitting import (
    Fact,
    brought,
    fits,
    goes_without,
    needs_asking,
    objection,
    only_for,
)
from toolkit.knowledge.components import launch_components, solving_order
from toolkit.knowledge.stacks import Stacks, Version
from toolkit.model.solution import Component, Provider
from toolkit.versions import parse

_MPI: tuple[Component, ...] = ("openmpi", "mpich")
_ALWAYS: tuple[Component, ...] = ("base", "python")
_OLDEST = Number("0")
_LATER: dict[Provider, int] = {"pypi": 1, "published": 1, "source": 2}

Taken = dict[Component, Version]
Pair = frozenset[Component]
"""Two components; one alone where a fact is of an architecture."""
Works = Callable[[str, Taken], bool]
"""Tells whether the cluster starts what a stack for an architecture would be."""


@dataclass(frozen=True, slots=True)
class RowOrder:
    """A table made ready to be searched: rows in order of preference, and which were found not to fit."""

    table: Stacks
    rows: dict[Component, tuple[Version, ...]]
    quarrels: dict[tuple[int, int], Fact | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SearchProblem:
    """What is searched, and what was seen on the way to a dead end.

    ``asked`` are the components whose rows that wait to be asked for may be taken. ``spared`` are pairs of
    components that need not fit each other. ``seen`` maps a fact to the pair that it speaks of.
    """

    book: RowOrder
    demand: Demand
    asked: frozenset[Component]
    works: Works | None = None
    spared: frozenset[Pair] = frozenset()
    seen: dict[Fact, Pair] = field(default_factory=dict)


def first(problem: SearchProblem) -> tuple[str, Taken] | None:
    """Return the preferred stack and its architecture; ``None`` where there is none."""
    for architecture in problem.book.table.architectures:
        if all(architecture == wanted for wanted in problem.demand.architecture):
            for stack in _stacks(problem, architecture, {}):
                return architecture, stack
    return None


def ordered(table: Stacks) -> RowOrder:
    """Return the rows of a table, those of each component best first: the distribution's own, then wheels,
    then what has to be compiled; of each the newest. Bases are in the order of the table.
    """
    rows = {component: _best_first(component, table.rows(component)) for component in solving_order()}
    return RowOrder(table, rows)


def wanted(problem: SearchProblem, component: Component, row: Version) -> bool:
    """Tell whether a row is within what is asked for of its component itself."""
    return _within(problem, component, row) and not _waits(problem, component, row)


def _waits(problem: SearchProblem, component: Component, row: Version) -> bool:
    """Return whether a row needs a recipe that names its component, and the recipe does not."""
    return row.asked and component not in problem.asked


def _within(problem: SearchProblem, component: Component, row: Version) -> bool:
    demand = problem.demand
    if component in _MPI and any(row.provider != provider for provider in demand.provider):
        return False
    wishes = demand.base if component == "base" else [w for c, w in demand.bounds if c == component]
    return all(fits(component, row, wish) for wish in wishes)


def _stacks(problem: SearchProblem, architecture: str, taken: Taken) -> Iterator[Taken]:
    needed = _needed(problem.demand, taken)
    component = next((c for c in solving_order() if c in needed and c not in taken), None)
    if component is None:
        if _absent(problem, taken, needed):
            yield taken
        return
    for row in _candidates(problem, architecture, component, taken):
        if _goes(problem, component, row, taken):
            extended = {**taken, component: row}
            if _starts(problem, architecture, extended):
                yield from _stacks(problem, architecture, extended)


def _needed(demand: Demand, taken: Taken) -> set[Component]:
    return {*demand.has, *_ALWAYS, *(c for row in taken.values() for c in row.requires)}


def _candidates(
    problem: SearchProblem, architecture: str, component: Component, taken: Taken
) -> Iterator[Version]:
    for row in problem.book.rows[component]:
        if not _within(problem, component, row):
            continue
        if _waits(problem, component, row) and not _spared(problem, component, taken):
            continue
        if row.architectures and architecture not in row.architectures:
            problem.seen[only_for(component, row)] = frozenset({component})
            continue
        yield row


def _spared(problem: SearchProblem, component: Component, taken: Taken) -> bool:
    """Return whether a component may be there though the recipe does not name it; note who needs it."""
    if component == "base":
        return False  # there is always one, and others wait for nothing
    needing = {frozenset({component, c}): (c, row) for c, row in taken.items() if component in row.requires}
    for pair, (other, row) in needing.items():
        if pair not in problem.spared:
            problem.seen[needs_asking(other, row, component)] = pair
    return bool(needing) and needing.keys() <= problem.spared


def _goes(problem: SearchProblem, component: Component, row: Version, taken: Taken) -> bool:
    for other, its in taken.items():
        pair = frozenset({component, other})
        if pair not in problem.spared and (said := _quarrel(problem.book, component, row, other, its)):
            problem.seen[said] = pair
            return False
    return True


def _quarrel(
    book: RowOrder, component: Component, row: Version, other: Component, its: Version
) -> Fact | None:
    key = (id(row), id(its))
    if key not in book.quarrels:
        said = objection(component, row, other, its)
        book.quarrels[key] = said or brought(book.table, component, row, other, its)
    return book.quarrels[key]


def _best_first(component: Component, rows: tuple[Version, ...]) -> tuple[Version, ...]:
    if component == "base":
        return rows
    newest = sorted(rows, key=lambda row: parse(row.version) or _OLDEST, reverse=True)
    return tuple(sorted(newest, key=lambda row: _LATER.get(row.provider, 0)))


def _starts(problem: SearchProblem, architecture: str, taken: Taken) -> bool:
    """Ask the cluster, once everything is decided that it looks at."""
    if not (problem.demand.cluster and problem.works) or "base" not in taken:
        return True
    looked_at = _needed(problem.demand, taken) & set(launch_components())
    return not looked_at <= set(taken) or problem.works(architecture, taken)


def _absent(problem: SearchProblem, taken: Taken, needed: set[Component]) -> bool:
    for component, row in taken.items():
        for other in row.without:
            pair = frozenset({component, other})
            if other in needed and pair not in problem.spared:
                problem.seen[goes_without(component, row, other)] = pair
                return False
    return True
