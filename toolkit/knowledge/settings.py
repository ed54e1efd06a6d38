"""``settings.toml``: the effects of variables that control an MPI."""

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
    "library",
    "value",
    "any",
    "unknown",
    "harmless",
]


class Setting(Row, frozen=True, kw_only=True):
    """One variable, and how its value is judged.

    ``components``: a list of components of ``framework``; a component that the image lacks causes
    ``outcome``. ``exclusion``: a list after ``^`` is harmless if it keeps all of ``value``; another list
    belongs to another row. ``interfaces``: names of network interfaces; an interface that the host lacks
    causes ``outcome``. ``left-out``: names of excluded interfaces, instead of the loopback interface, which
    is excluded by default. ``devices``: names of devices of a fabric or network interfaces, in UCX's form.
    ``path``: a folder of the host in which plugins are searched. ``transport``: fabrics that the host must
    have, unless one of ``value`` is named. ``network``: words that require a fast network, which the host
    must have, unless a word of ``value`` is in it. ``netmod``: one of MPICH's network modules, read if there
    are several. ``library``: a word of ``value`` needs ``library`` in the image; other words, and an image
    that has it, belong to another row. ``value``: the value itself decides. ``unknown``: its effect depends
    on something that is not a fact. ``harmless``: no value changes how ranks start.

    The row applies to MPIs of ``implementation``, ``versions``, a device with one of the prefixes ``device``,
    and PMIx clients within ``client``. With ``speaks`` it applies only to MPIs of that interface; other MPIs
    do not read the variable. ``nodes`` and ``modes`` bound the launches to which the row applies. ``first``:
    the setting stops a rank before the rank looks for its launcher.
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
    library: str = ""
    outcome: Outcome = "ok"
    because: str = ""
    first: bool = False


class Component(Row, frozen=True, kw_only=True):
    """The outcome if only this component of Open MPI is allowed, though the image has it; the first row whose
    ``versions`` match the image counts.

    ``by`` names its way to a fast network, ``unless`` the settings that let it work without a fast network.
    """

    framework: str
    name: str
    versions: str = ""
    outcome: Outcome
    because: str
    by: Literal["", "ucx", "mtl", "openib"] = ""
    unless: dict[str, str] = msgspec.field(default_factory=dict)


class Ucx(Row, frozen=True, kw_only=True):
    """Names in UCX_TLS: a transport of ``enough`` reaches other nodes by InfiniBand; a transport of ``near``
    does not.
    """

    enough: tuple[str, ...]
    near: tuple[str, ...]


class SettingKnowledge(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``settings.toml``; the first row that fits a variable counts."""

    setting: tuple[Setting, ...]
    component: tuple[Component, ...]
    ucx: Ucx


@cache
def settings() -> SettingKnowledge:
    """Return the table about settings."""
    return read("settings", SettingKnowledge)


def reads_value(name: str) -> bool:
    """Return whether a rule may depend on the value of a variable; for all others the name is enough."""
    known = settings()
    rows = (row for row in known.setting if fnmatchcase(name, row.name))
    lifts = (component.unless for component in known.component)
    return any(row.kind not in _VALUELESS for row in rows) or any(name in unless for unless in lifts)


_VALUELESS: frozenset[Kind] = frozenset({"harmless", "unknown", "any"})
"""Kinds whose values never change the outcome."""
