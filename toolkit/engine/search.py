"""Find the newest stack that satisfies every constraint: plain backtracking over rows; pure.

Components are decided in a fixed order, each from its preferred row down, so the first stack that is
complete is the preferred one: newest TensorFlow first, then newest Horovod, and so on.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from packaging.version import Version as Number

from toolkit.engine.asks import Demand
from toolkit.knowledge.stacks import Stacks, Version, Wishes
from toolkit.model.solution import Component
from toolkit.versions import meets, parse

ORDER: tuple[Component, ...] = (
    "tensorflow",
    "horovod",
    "keras",
    "cuda",
    "openmpi",
    "mpich",
    "base",
    "python",
    "pmix",
    "ucx",
    "cudnn",
    "nccl",
    "mpi4py",
)
"""Most important first. What a cluster judges stands before what it does not look at."""

_MPI: tuple[Component, ...] = ("openmpi", "mpich")
_ALWAYS: tuple[Component, ...] = ("base", "python")
_OLDEST = Number("0")

Taken = dict[Component, Version]
Works = Callable[[str, Taken], bool]
"""Tells whether the cluster starts what a stack for an architecture would be."""


@dataclass(frozen=True, slots=True)
class Problem:
    """What is searched, and what was seen on the way to a dead end.

    ``asked`` are the components whose rows that wait to be asked for may be taken.
    """

    table: Stacks
    demand: Demand
    asked: frozenset[Component]
    works: Works | None = None
    seen: dict[str, None] = field(default_factory=dict)


def first(problem: Problem) -> tuple[str, Taken] | None:
    """Return the preferred stack and its architecture; ``None`` where there is none."""
    for architecture in problem.table.architectures:
        if all(architecture == wanted for wanted in problem.demand.architecture):
            for stack in _stacks(problem, architecture, {}):
                return architecture, stack
    return None


def preferred(table: Stacks, component: Component) -> tuple[Version, ...]:
    """Return the rows of a component, best first: what needs no compiling, then the newest.

    Bases are in the order of the table.
    """
    rows = table.rows(component)
    if component == "base":
        return rows
    return tuple(
        sorted(rows, key=lambda r: (r.provider != "source", parse(r.version) or _OLDEST), reverse=True)
    )


def fits(component: Component, version: str, wish: str | tuple[str, ...]) -> bool:
    """Tell whether a version is one of those that are wished for; bases go by names and patterns."""
    wishes = (wish,) if isinstance(wish, str) else wish
    return any(fnmatchcase(version, w) if component == "base" else meets(version, w) for w in wishes)


def objection(component: Component, row: Version, other: Component, taken: Version) -> str:
    """Return why two rows do not go together; empty text if they do."""
    return _refuses(component, row, other, taken) or _refuses(other, taken, component, row)


def spoken(component: Component, version: str) -> str:
    """Name a component of a version, as a sentence needs it."""
    return version if component == "base" else f"{component} {version}"


def bounds_of(wish: str | tuple[str, ...]) -> str:
    """Write a wish of a row: ``3.9, 3.10 or 3.11``."""
    if isinstance(wish, str):
        return wish
    return wish[0] if len(wish) == 1 else f"{', '.join(wish[:-1])} or {wish[-1]}"


def _stacks(problem: Problem, architecture: str, taken: Taken) -> Iterator[Taken]:
    needed = _needed(problem.demand, taken)
    component = next((c for c in ORDER if c in needed and c not in taken), None)
    if component is None:
        if _absent(problem, taken, needed):
            yield taken
        return
    for row in _candidates(problem, architecture, component):
        if _goes(problem, component, row, taken):
            extended = {**taken, component: row}
            if _starts(problem, architecture, extended):
                yield from _stacks(problem, architecture, extended)


def _needed(demand: Demand, taken: Taken) -> set[Component]:
    return {*demand.has, *_ALWAYS, *(c for row in taken.values() for c in row.requires)}


def _candidates(problem: Problem, architecture: str, component: Component) -> Iterator[Version]:
    demand = problem.demand
    wishes = demand.base if component == "base" else [w for c, w in demand.bounds if c == component]
    for row in preferred(problem.table, component):
        if row.asked and component not in problem.asked:
            continue
        if row.architectures and architecture not in row.architectures:
            problem.seen[f"{spoken(component, row.version)} is there for {', '.join(row.architectures)}"] = (
                None
            )
            continue
        if component in _MPI and any(row.provider != wanted for wanted in demand.provider):
            continue
        if all(fits(component, row.version, wish) for wish in wishes):
            yield row


def _goes(problem: Problem, component: Component, row: Version, taken: Taken) -> bool:
    for other, its in taken.items():
        if said := objection(component, row, other, its) or _brought(
            problem.table, component, row, other, its
        ):
            problem.seen[said] = None
            return False
    return True


def _refuses(component: Component, row: Version, other: Component, taken: Version) -> str:
    wishes: Wishes = {**row.fits, **row.requires}
    if other in wishes and not fits(other, taken.version, wishes[other]):
        what = "" if other == "base" else f"{other} "
        return f"{spoken(component, row.version)} goes with {what}{bounds_of(wishes[other])}"
    if other in row.without:
        return f"{spoken(component, row.version)} ({row.provider}) goes without {other}"
    return ""


def _brought(table: Stacks, component: Component, row: Version, other: Component, taken: Version) -> str:
    """Tell whether a base has a component already, which then is not put on it a second time."""
    pairs = ((component, row, other, taken), (other, taken, component, row))
    for one, base, another, on_it in pairs:
        if one == "base" and another in table.base_of(base.version).brings and on_it.provider != "published":
            return f"{base.version} brings its own {another}"
    return ""


def _starts(problem: Problem, architecture: str, taken: Taken) -> bool:
    """Ask the cluster, once everything is decided that it looks at."""
    if not (problem.demand.cluster and problem.works) or "base" not in taken:
        return True
    looked_at = {
        c for c in _needed(problem.demand, taken) if c in {*_MPI, "base", "python", "pmix", "ucx", "cuda"}
    }
    return not looked_at <= set(taken) or problem.works(architecture, taken)


def _absent(problem: Problem, taken: Taken, needed: set[Component]) -> bool:
    for component, row in taken.items():
        for other in row.without:
            if other in needed:
                problem.seen[f"{spoken(component, row.version)} goes without {other}"] = None
                return False
    return True
