"""Find the newest stack that satisfies every constraint, by backtracking over rows of ``stacks.toml``.

A stack has one row for each component of an image. The solver chooses a row for one component after the
other, in a fixed order. For each component, the solver tries the preferred rows first. The first complete
stack is the preferred stack: it has the newest possible TensorFlow, then the newest Horovod that is
compatible with this TensorFlow, and so on.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from packaging.version import Version as Number

from toolkit.engine.solver.constraints import Demand
from toolkit.engine.solver.fitting import (
    Fact,
    brought,
    excludes,
    fits,
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

ChosenRows = dict[Component, Version]
Pair = frozenset[Component]
"""The two components of a conflict. If the conflict is that a component's row does not exist for the
architecture, the set has only this component.
"""
Works = Callable[[str, ChosenRows], bool]
"""A function (architecture, rows of a stack) → whether the stack works on the cluster."""


@dataclass(frozen=True, slots=True)
class RowOrder:
    """The rows of ``stacks.toml`` in order of preference. ``quarrels`` caches the conflict of two rows, or
    ``None`` for compatible rows; the key has the ``id`` of each row.
    """

    table: Stacks
    rows: dict[Component, tuple[Version, ...]]
    quarrels: dict[tuple[int, int], Fact | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SearchProblem:
    """The input of a search, and the reasons why the search rejected rows.

    ``named_components`` lists the components that the recipe names. Only for these components may the solver
    use opt-in rows, which have ``asked = true`` in ``stacks.toml``. The solver ignores a conflict between two
    components if ``ignored_pairs`` contains this pair. ``works`` checks a stack on the cluster.
    ``conflicts`` maps each reason why the search rejected a row to the components of this conflict.
    """

    book: RowOrder
    demand: Demand
    named_components: frozenset[Component]
    works: Works | None = None
    ignored_pairs: frozenset[Pair] = frozenset()
    conflicts: dict[Fact, Pair] = field(default_factory=dict)


def find_stack(problem: SearchProblem) -> tuple[str, ChosenRows] | None:
    """Return the architecture and the rows of the preferred stack; ``None`` if no stack satisfies the
    constraints.
    """
    for architecture in problem.book.table.architectures:
        if all(architecture == wish for wish in problem.demand.architecture):
            for stack in _stacks(problem, architecture, {}):
                return architecture, stack
    return None


def order_rows(table: Stacks) -> RowOrder:
    """Return the rows of ``stacks.toml`` for each component, in order of preference.

    First come Debian packages and components of the base image, then wheels and published images, then
    components to compile. Within each group, the newest version comes first. Base images keep the order of
    ``stacks.toml``.
    """
    rows = {component: _best_first(component, table.rows(component)) for component in solving_order()}
    return RowOrder(table, rows)


def matches_demand(problem: SearchProblem, component: Component, row: Version) -> bool:
    """Return whether a row of ``stacks.toml`` satisfies the constraints on its component. The result is False
    for an opt-in row of a component that the recipe does not name.
    """
    return _within(problem, component, row) and not _is_opt_in(problem, component, row)


def _is_opt_in(problem: SearchProblem, component: Component, row: Version) -> bool:
    """Return whether a row is an opt-in row (``asked = true`` in ``stacks.toml``) of a component that the
    recipe does not name.
    """
    return row.asked and component not in problem.named_components


def _within(problem: SearchProblem, component: Component, row: Version) -> bool:
    demand = problem.demand
    if component in _MPI and any(row.provider != provider for provider in demand.provider):
        return False
    wishes = demand.base if component == "base" else [w for c, w in demand.bounds if c == component]
    return all(fits(component, row, wish) for wish in wishes)


def _stacks(problem: SearchProblem, architecture: str, stack: ChosenRows) -> Iterator[ChosenRows]:
    needed = _needed_components(problem.demand, stack)
    component = next((c for c in solving_order() if c in needed and c not in stack), None)
    if component is None:
        if _absent(problem, stack, needed):
            yield stack
        return
    for row in _candidates(problem, architecture, component, stack):
        if _fits_all(problem, component, row, stack):
            extended = {**stack, component: row}
            if _starts(problem, architecture, extended):
                yield from _stacks(problem, architecture, extended)


def _needed_components(demand: Demand, stack: ChosenRows) -> set[Component]:
    return {*demand.components, *_ALWAYS, *(c for row in stack.values() for c in row.requires)}


def _candidates(
    problem: SearchProblem, architecture: str, component: Component, stack: ChosenRows
) -> Iterator[Version]:
    for row in problem.book.rows[component]:
        if not _within(problem, component, row):
            continue
        if _is_opt_in(problem, component, row) and not _may_leave_out(problem, component, stack):
            continue
        if row.architectures and architecture not in row.architectures:
            problem.conflicts[only_for(component, row)] = frozenset({component})
            continue
        yield row


def _may_leave_out(problem: SearchProblem, component: Component, stack: ChosenRows) -> bool:
    """Return whether the solver may use opt-in rows of a component that the recipe does not name.

    The result is True only if components in ``stack`` need this component, and the search ignores the
    conflict between this component and each of them (``problem.ignored_pairs``). The function adds each
    conflict that the search does not ignore to ``problem.conflicts``.
    """
    if component == "base":
        return False  # every stack has a base
    needing = {frozenset({component, c}): (c, row) for c, row in stack.items() if component in row.requires}
    for pair, (other, row) in needing.items():
        if pair not in problem.ignored_pairs:
            problem.conflicts[needs_asking(other, row, component)] = pair
    return bool(needing) and needing.keys() <= problem.ignored_pairs


def _fits_all(problem: SearchProblem, component: Component, row: Version, stack: ChosenRows) -> bool:
    for other, other_row in stack.items():
        pair = frozenset({component, other})
        if pair not in problem.ignored_pairs and (
            said := _conflict(problem.book, component, row, other, other_row)
        ):
            problem.conflicts[said] = pair
            return False
    return True


def _conflict(
    book: RowOrder, component: Component, row: Version, other: Component, other_row: Version
) -> Fact | None:
    key = (id(row), id(other_row))
    if key not in book.quarrels:
        said = objection(component, row, other, other_row)
        book.quarrels[key] = said or brought(book.table, component, row, other, other_row)
    return book.quarrels[key]


def _best_first(component: Component, rows: tuple[Version, ...]) -> tuple[Version, ...]:
    if component == "base":
        return rows
    newest = sorted(rows, key=lambda row: parse(row.version) or _OLDEST, reverse=True)
    return tuple(sorted(newest, key=lambda row: _LATER.get(row.provider, 0)))


def _starts(problem: SearchProblem, architecture: str, stack: ChosenRows) -> bool:
    """Return whether a possibly incomplete stack works on the cluster. The result is also True if the user
    names no cluster, or if the stack does not yet have all components that affect the launch.
    """
    if not (problem.demand.cluster and problem.works) or "base" not in stack:
        return True
    looked_at = _needed_components(problem.demand, stack) & set(launch_components())
    return not looked_at <= set(stack) or problem.works(architecture, stack)


def _absent(problem: SearchProblem, stack: ChosenRows, components: set[Component]) -> bool:
    for component, row in stack.items():
        for other in row.without:
            pair = frozenset({component, other})
            if other in components and pair not in problem.ignored_pairs:
                problem.conflicts[excludes(component, row, other)] = pair
                return False
    return True
