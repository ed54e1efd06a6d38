"""What a stack has to satisfy, one constraint at a time: the recipe's lines, and the cluster; pure."""

from collections.abc import Iterable
from dataclasses import dataclass

from toolkit.model.facts import HostFacts
from toolkit.model.recipe import MATCH_HOST, Recipe
from toolkit.model.solution import Component


@dataclass(frozen=True, slots=True)
class Ask:
    """One constraint, which can be dropped by itself.

    ``text`` is how a person wrote it. ``has`` are components that have to be there, ``bounds`` what their
    versions have to be; ``weaker`` is the text of the constraint that this one implies.
    """

    text: str
    has: tuple[Component, ...] = ()
    bounds: tuple[tuple[Component, str], ...] = ()
    base: str = ""
    architecture: str = ""
    provider: str = ""
    cluster: bool = False
    weaker: str = ""


@dataclass(frozen=True, slots=True)
class Demand:
    """Several constraints together."""

    has: frozenset[Component]
    bounds: tuple[tuple[Component, str], ...]
    base: tuple[str, ...]
    architecture: tuple[str, ...]
    provider: tuple[str, ...]
    cluster: bool


def asks_of(recipe: Recipe, host: HostFacts | None) -> tuple[Ask, ...]:
    """Return the constraints of a recipe and of a cluster, the weaker of two that are related first."""
    found: list[Ask] = []
    for name, wish in recipe.want.items():
        written = f'{name} = "{wish}"'
        if wish in {"*", MATCH_HOST}:
            found.append(Ask(written, has=(name,)))
            continue
        weak = Ask(f"{name}, of whatever version", has=(name,))
        found += [weak, Ask(written, has=(name,), bounds=((name, wish),), weaker=weak.text)]
    if "nccl" in recipe.operations:
        found.append(Ask('horovod.operations with "nccl"', has=("horovod", "nccl", "cuda")))
    if recipe.mpi.provider:
        found.append(Ask(f'mpi.provider = "{recipe.mpi.provider}"', provider=recipe.mpi.provider))
    if recipe.base:
        found.append(Ask(f'base = "{recipe.base}"', base=recipe.base))
    found.append(Ask(f'architecture = "{recipe.architecture}"', architecture=recipe.architecture))
    if host is not None:
        found.append(Ask(f"the cluster ({host.place})", cluster=True))
    return tuple(found)


def demand_of(asks: Iterable[Ask]) -> Demand:
    """Return what several constraints ask for together."""
    asks = tuple(asks)
    return Demand(
        has=frozenset(c for ask in asks for c in ask.has),
        bounds=tuple(b for ask in asks for b in ask.bounds),
        base=tuple(ask.base for ask in asks if ask.base),
        architecture=tuple(ask.architecture for ask in asks if ask.architecture),
        provider=tuple(ask.provider for ask in asks if ask.provider),
        cluster=any(ask.cluster for ask in asks),
    )


def without(asks: tuple[Ask, ...], dropped: Ask) -> tuple[Ask, ...]:
    """Return the constraints without one, and without those that imply it."""
    return tuple(a for a in asks if a is not dropped and a.weaker != dropped.text)


def asked_for(recipe: Recipe) -> frozenset[Component]:
    """Return the components that the recipe names, of which rows that wait to be asked for may be taken.

    Who names a library of CUDA asks for CUDA.
    """
    named: set[Component] = set(demand_of(asks_of(recipe, None)).has)
    if recipe.base:
        named.add("base")
    if named & {"cudnn", "nccl"}:
        named.add("cuda")
    return frozenset(named)
