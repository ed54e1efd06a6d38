"""Derive the constraints on a stack from the recipe and the cluster."""

from collections.abc import Iterable
from dataclasses import dataclass

from toolkit.model.facts import HostFacts
from toolkit.model.recipe import MATCH_HOST, Recipe
from toolkit.model.solution import Component


@dataclass(frozen=True, slots=True)
class StackConstraint:
    """One constraint on a stack. To explain a conflict, the solver leaves out one constraint at a time.

    ``text`` is how messages name the constraint, such as ``tensorflow = "2.15.*"``. ``components`` are the
    components that the stack must contain. ``bounds`` limits the versions of components. ``base`` is the base
    image, ``provider`` the provider of the MPI. If ``cluster`` is true, the stack must work on the given
    cluster.
    ``weaker`` is the text of a constraint that this constraint implies: ``tensorflow = "2.15.*"`` implies
    ``tensorflow, any version``.
    """

    text: str
    components: tuple[Component, ...] = ()
    bounds: tuple[tuple[Component, str], ...] = ()
    base: str = ""
    architecture: str = ""
    provider: str = ""
    cluster: bool = False
    weaker: str = ""


@dataclass(frozen=True, slots=True)
class Demand:
    """Several constraints combined into one."""

    components: frozenset[Component]
    bounds: tuple[tuple[Component, str], ...]
    base: tuple[str, ...]
    architecture: tuple[str, ...]
    provider: tuple[str, ...]
    cluster: bool


def constraints_of(recipe: Recipe, host: HostFacts | None) -> tuple[StackConstraint, ...]:
    """Return the constraints of a recipe and, if ``host`` has the facts of a cluster, the constraint that the
    stack must work on this cluster. A weaker constraint comes before the constraint that implies it.
    """
    found: list[StackConstraint] = []
    for name, wish in recipe.want.items():
        written = f'{name} = "{wish}"'
        if wish in {"*", MATCH_HOST}:
            found.append(StackConstraint(written, components=(name,)))
            continue
        weak = StackConstraint(f"{name}, any version", components=(name,))
        found += [
            weak,
            StackConstraint(written, components=(name,), bounds=((name, wish),), weaker=weak.text),
        ]
    if "nccl" in recipe.operations:
        found.append(
            StackConstraint('horovod.operations with "nccl"', components=("horovod", "nccl", "cuda"))
        )
    if recipe.mpi.provider:
        found.append(StackConstraint(f'mpi.provider = "{recipe.mpi.provider}"', provider=recipe.mpi.provider))
    if recipe.base:
        found.append(StackConstraint(f'base = "{recipe.base}"', base=recipe.base))
    found.append(StackConstraint(f'architecture = "{recipe.architecture}"', architecture=recipe.architecture))
    if host is not None:
        found.append(StackConstraint(f"the cluster ({host.place})", cluster=True))
    return tuple(found)


def demand_of(constraints: Iterable[StackConstraint]) -> Demand:
    """Return all constraints combined into one :class:`Demand`."""
    constraints = tuple(constraints)
    return Demand(
        components=frozenset(c for one in constraints for c in one.components),
        bounds=tuple(b for one in constraints for b in one.bounds),
        base=tuple(one.base for one in constraints if one.base),
        architecture=tuple(one.architecture for one in constraints if one.architecture),
        provider=tuple(one.provider for one in constraints if one.provider),
        cluster=any(one.cluster for one in constraints),
    )


def without(
    constraints: tuple[StackConstraint, ...], constraint: StackConstraint
) -> tuple[StackConstraint, ...]:
    """Return the constraints except ``constraint`` and all constraints that imply ``constraint``."""
    return tuple(c for c in constraints if c is not constraint and c.weaker != constraint.text)


def named_components(recipe: Recipe) -> frozenset[Component]:
    """Return the components that the recipe names. The solver may use opt-in rows of ``stacks.toml`` (rows
    with ``asked``) only for components that the recipe names.

    The result includes ``base`` if the recipe names a base image, and CUDA if the recipe names cuDNN or NCCL.
    """
    named: set[Component] = set(demand_of(constraints_of(recipe, None)).components)
    if recipe.base:
        named.add("base")
    if named & {"cudnn", "nccl"}:
        named.add("cuda")
    return frozenset(named)
