"""Read ``settings.toml``: the effects of environment variables that control an MPI library."""

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
    "tuning",
]


class Setting(Row, frozen=True, kw_only=True):
    """One variable, and how toolkit judges its value.

    ``kind`` is one of these:

    - ``components``: a list of components of the MCA ``framework``. A component that the image does not have
      causes ``outcome``.
    - ``exclusion``: a list of components to exclude, which starts with ``^``. The list is harmless if it
      contains no name in ``value``. A list that contains a name in ``value`` causes ``outcome`` if the row
      has ``because``. If the row has no ``because``, a later row judges the list.
    - ``interfaces``: names of network interfaces. If the host has none of these interfaces, the setting
      causes ``outcome``.
    - ``left-out``: names of network interfaces to exclude. The list replaces Open MPI's default list, so it
      must contain the loopback interface. It must also leave at least one other interface.
    - ``devices``: names of RDMA devices or network interfaces of the host, in UCX's syntax.
    - ``path``: a folder of the host in which an MPI looks for plugins. If the MPI has plugins, and the launch
      does not mount this folder, the setting causes ``outcome``.
    - ``transport``: a list of transports. The setting needs a fast network on the host, unless the list
      contains a transport in ``value``.
    - ``network``: a setting that needs a fast network on the host, unless the setting contains a word in
      ``value``.
    - ``netmod``: one of MPICH's network modules. If the image's MPICH has several modules, but not this
      module, the setting causes ``outcome``.
    - ``library``: if the setting contains a name in ``value``, the image needs ``library``. If the image
      has ``library``, or the setting contains no such name, a later row judges the setting.
    - ``value``: a setting whose value is in ``value`` causes ``outcome``.
    - ``any``: every value causes ``outcome``.
    - ``unknown``: the effect depends on properties that toolkit does not read.
    - ``harmless``: no value changes how ranks start.
    - ``tuning``: the variable changes how ranks exchange messages. toolkit has not measured its effect, so
      toolkit predicts the launch as if the variable were not set, and marks the prediction as not measured.

    The row applies to MPIs that match ``implementation`` and ``versions``, whose device starts with an entry
    of ``device``, and whose PMIx client has a release within ``client``. If ``speaks`` is given, the row
    applies only to MPIs that support this launch interface, because other MPIs do not read the variable.
    ``nodes`` and ``modes`` limit the launches to which the row applies. If ``first`` is true, the setting
    stops a rank before the rank looks for its launcher.
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
    """The outcome if a setting requests this component of Open MPI, and the image has the component. If a
    component has several rows, the first row whose ``versions`` match the image's Open MPI decides.

    ``by`` is the transport with which the component uses a fast network. If ``by`` is given, ``outcome``
    applies only if this transport finds no fast network. ``unless`` lists settings with which the component
    works without a fast network.
    """

    framework: str
    name: str
    versions: str = ""
    outcome: Outcome
    because: str
    by: Literal["", "ucx", "mtl", "openib"] = ""
    unless: dict[str, str] = msgspec.field(default_factory=dict)


class Ucx(Row, frozen=True, kw_only=True):
    """Names of transports in the variable ``UCX_TLS``. Transports in ``enough`` reach other nodes over
    InfiniBand. Transports in ``near`` work only within a node.
    """

    enough: tuple[str, ...]
    near: tuple[str, ...]


class SettingKnowledge(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of ``settings.toml``; the first row that matches a variable decides."""

    setting: tuple[Setting, ...]
    component: tuple[Component, ...]
    ucx: Ucx


@cache
def settings() -> SettingKnowledge:
    """Return the content of ``settings.toml``."""
    return read("settings", SettingKnowledge)


def reads_value(name: str) -> bool:
    """Return whether the effect of the variable ``name`` depends on its value."""
    known = settings()
    rows = (row for row in known.setting if fnmatchcase(name, row.name))
    lifts = (component.unless for component in known.component)
    return any(row.kind not in _VALUELESS for row in rows) or any(name in unless for unless in lifts)


_VALUELESS: frozenset[Kind] = frozenset({"harmless", "tuning", "unknown", "any"})
"""Kinds of settings whose value never changes the outcome."""
