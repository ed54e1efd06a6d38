"""``settings.toml``: what variables do that steer an MPI."""

from fnmatch import fnmatchcase
from functools import cache
from typing import Literal

import msgspec

from toolkit.knowledge.mpi import Count
from toolkit.knowledge.reading import Row, read
from toolkit.model.prediction import Mode, Outcome

Kind = Literal[
    "components",
    "exclusion",
    "interfaces",
    "left-out",
    "devices",
    "path",
    "network",
    "transport",
    "netmod",
    "value",
    "unknown",
    "harmless",
]


class Setting(Row, frozen=True, kw_only=True):
    """One variable, and how its value is judged.

    ``components``: a list of components of ``framework``; one that the image lacks ends in ``outcome``.
    ``exclusion``: a list behind ``^`` is harmless while it leaves all of ``value``; another list is another
    row's. ``interfaces``: names of network interfaces; one that the host lacks ends in ``outcome``.
    ``left-out``: names of interfaces that are not taken, in place of the loopback interface, which is left
    out by default.
    ``devices``: names of devices of a fabric or network interfaces, as UCX takes them.
    ``path``: a folder of the host in which plugins are looked for. ``transport``: fabrics of the host
    that must be there, unless one of ``value`` is named. ``network``: what asks for a fast network, of which
    the host must have one, unless a word of ``value`` is in it. ``netmod``: one of MPICH's network modules,
    read where there are several.
    ``value``: the value itself decides. ``unknown``: what it does turns on what is no fact.
    ``harmless``: no value changes how ranks start.

    It counts for MPIs of ``implementation``, ``versions``, a device that begins with one of ``device``,
    PMIx clients within ``client``, and with ``speaks`` only for MPIs of that interface; for others the
    variable is not read. ``nodes`` and ``modes`` bound the launches for which it says something.
    ``first``: it ends a rank before that looks for its launcher.
    """

    name: str
    kind: Kind
    implementation: tuple[str, ...] = ()
    versions: str = ""
    device: tuple[str, ...] = ()
    client: str = ""
    speaks: Literal["pmix", ""] = ""
    modes: tuple[Mode, ...] = ()
    nodes: Count = "any"
    framework: str = ""
    value: tuple[str, ...] = ()
    outcome: Outcome = "ok"
    because: str = ""
    first: bool = False


class Component(Row, frozen=True, kw_only=True):
    """What happens where only this component of Open MPI is allowed, though the image has it; the first row
    whose ``versions`` are those of the image counts.

    ``by`` says through what it takes a fast network, ``unless`` which settings let it do without one.
    """

    framework: str
    name: str
    versions: str = ""
    outcome: Outcome
    because: str
    by: Literal["", "ucx", "mtl", "openib"] = ""
    unless: dict[str, str] = msgspec.field(default_factory=dict)


class Ucx(Row, frozen=True, kw_only=True):
    """Names in UCX_TLS: one of ``enough`` reaches other nodes by InfiniBand, those of ``near`` reach none."""

    enough: tuple[str, ...]
    near: tuple[str, ...]


class SettingKnowledge(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``settings.toml``; the first row that fits a variable counts."""

    setting: tuple[Setting, ...]
    component: tuple[Component, ...]
    ucx: Ucx


@cache
def settings() -> SettingKnowledge:
    """Return what is known of settings."""
    return read("settings", SettingKnowledge)


def reads_value(name: str) -> bool:
    """Tell whether a rule may turn on the value of a variable; of all others the name is enough."""
    known = settings()
    rows = (row for row in known.setting if fnmatchcase(name, row.name))
    lifts = (component.unless for component in known.component)
    return any(row.kind not in _VALUELESS for row in rows) or any(name in unless for unless in lifts)


_VALUELESS: frozenset[Kind] = frozenset({"harmless", "unknown"})
"""Kinds of which no value changes the outcome."""
