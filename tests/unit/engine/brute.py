"""Solve constraints by brute force and without code of the solver, to check the solver's results."""

from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from itertools import product

from toolkit.engine.solver.constraints import StackConstraint
from toolkit.knowledge.components import components as known_components
from toolkit.knowledge.stacks import Stacks, Version
from toolkit.versions import meets

Stack = dict[str, Version]
Works = Callable[[str, Stack], bool]
MPIS = ("openmpi", "mpich")


def solvable(
    table: Stacks, asks: tuple[StackConstraint, ...], asked: frozenset[str], works: Works | None = None
) -> bool:
    return any(
        satisfies(table, asks, asked, architecture, stack, works)
        for architecture in table.architectures
        for stack in combinations(table)
    )


def combinations(table: Stacks) -> Iterator[Stack]:
    components = [c for c in known_components() if table.rows(c)]
    options = [table.rows(c) if c in ("base", "python") else (None, *table.rows(c)) for c in components]
    for choice in product(*options):
        yield {c: row for c, row in zip(components, choice, strict=True) if row is not None}


def satisfies(
    table: Stacks,
    asks: tuple[StackConstraint, ...],
    asked: frozenset[str],
    architecture: str,
    stack: Stack,
    works: Works | None = None,
) -> bool:
    if not {"base", "python"} <= set(stack):
        return False
    if not all(_row_holds(table, asked, architecture, stack, component) for component in stack):
        return False
    return all(_ask_holds(ask, architecture, stack, works) for ask in asks)


def _row_holds(table: Stacks, asked: frozenset[str], architecture: str, stack: Stack, component: str) -> bool:
    row = stack[component]
    brings = next(b for b in table.base if b.name == stack["base"].version).brings
    return (
        (not row.asked or component in asked)
        and (not row.architectures or architecture in row.architectures)
        and all(c in stack and meets_row(c, stack[c], wish) for c, wish in row.requires.items())
        and all(c not in stack or meets_row(c, stack[c], wish) for c, wish in row.fits.items())
        and not any(c in stack for c in row.without)
        and (component not in brings or row.provider == "published")
    )


def _ask_holds(ask: StackConstraint, architecture: str, stack: Stack, works: Works | None) -> bool:
    mpis = [stack[c] for c in MPIS if c in stack]
    return (
        all(c in stack for c in ask.components)
        and all(c in stack and meets_row(c, stack[c], wish) for c, wish in ask.bounds)
        and (not ask.base or fnmatchcase(stack["base"].version, ask.base))
        and (not ask.architecture or architecture == ask.architecture)
        and (not ask.provider or all(mpi.provider == ask.provider for mpi in mpis))
        and (not ask.cluster or works is None or not mpis or works(architecture, stack))
    )


def meets_row(component: str, row: Version, wish: str | tuple[str, ...]) -> bool:
    for one in [wish] if isinstance(wish, str) else wish:
        if component == "base":
            if fnmatchcase(row.version, one):
                return True
            continue
        *provider, version = one.split(" ")
        if meets(row.version, version) and (not provider or provider == [row.provider]):
            return True
    return False


def solvable_by_joining(
    table: Stacks, asks: tuple[StackConstraint, ...], asked: frozenset[str], works: Works | None = None
) -> bool:
    """Return the same result as :func:`solvable`, for tables with too many combinations to try all.

    The function adds one component at a time, and drops a combination as soon as two of its rows exclude each
    other.
    """
    wanted = _reachable(table, asks)
    components = sorted(wanted, key=lambda c: (c not in {"base", "python"}, c))
    needed = {c for ask in asks for c in (*ask.components, *(b for b, _ in ask.bounds))} | {"base", "python"}
    for architecture in table.architectures:
        partial: list[Stack] = [{}]
        for component in components:
            options = [r for r in table.rows(component) if _alone(asks, asked, architecture, component, r)]
            partial = [
                extended
                for stack in partial
                for extended in (
                    *([stack] if component not in needed else []),
                    *({**stack, component: row} for row in options if _joins(stack, component, row)),
                )
            ]
        if any(satisfies(table, asks, asked, architecture, stack, works) for stack in partial):
            return True
    return False


def _reachable(table: Stacks, asks: tuple[StackConstraint, ...]) -> set[str]:
    found = {"base", "python", *(c for ask in asks for c in ask.components)}
    while True:
        more = {c for name in found for row in table.rows(name) for c in row.requires} | found
        if more == found:
            return found
        found = more


def _alone(
    asks: tuple[StackConstraint, ...], asked: frozenset[str], architecture: str, component: str, row: Version
) -> bool:
    if row.asked and component not in asked:
        return False
    if row.architectures and architecture not in row.architectures:
        return False
    bounds = [wish for ask in asks for c, wish in ask.bounds if c == component]
    return all(meets_row(component, row, wish) for wish in bounds)


def _joins(stack: Stack, component: str, row: Version) -> bool:
    for other, its in stack.items():
        for (one, mine), (two, theirs) in (
            ((component, row), (other, its)),
            ((other, its), (component, row)),
        ):
            wishes = [w for w in (mine.requires.get(two), mine.fits.get(two)) if w is not None]
            if two in mine.without or not all(meets_row(two, theirs, w) for w in wishes):
                return False
            assert one != two
    return True
