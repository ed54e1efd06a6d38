"""Read ``components.toml``: the components of an image, and the order in which toolkit chooses their
versions.
"""

from functools import cache

import msgspec

from toolkit.knowledge.reading import read
from toolkit.model.solution import Component


class ComponentRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One component of an image.

    ``decided`` is a position in the solver's order: toolkit chooses the versions of the components with small
    numbers first. ``launch`` is true if the component affects how an image starts on a
    cluster. ``named`` is true if a recipe may list the component in ``[want]``.
    """

    name: Component
    decided: int
    launch: bool = False
    named: bool = True


class _File(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    component: tuple[ComponentRow, ...]


@cache
def components() -> tuple[Component, ...]:
    """Return the names of all components in the order in which toolkit lists them for users."""
    return tuple(row.name for row in _rows())


@cache
def solving_order() -> tuple[Component, ...]:
    """Return the names of all components in the solver's order, in which toolkit chooses their versions."""
    return tuple(row.name for row in sorted(_rows(), key=lambda row: row.decided))


@cache
def launch_components() -> tuple[Component, ...]:
    """Return the components that affect how an image starts on a cluster, in the solver's order."""
    launch = {row.name for row in _rows() if row.launch}
    return tuple(name for name in solving_order() if name in launch)


@cache
def wantable_components() -> tuple[Component, ...]:
    """Return the components that the section ``[want]`` of a recipe may name."""
    return tuple(row.name for row in _rows() if row.named)


@cache
def _rows() -> tuple[ComponentRow, ...]:
    return read("components", _File).component
