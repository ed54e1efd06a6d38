"""Read ``fabric.toml``: fast networks, and the libraries that an image needs to use these networks."""

import re
from collections.abc import Iterable
from functools import cache

import msgspec

from toolkit.knowledge.reading import Row, read
from toolkit.versions import within


class Fabric(Row, frozen=True, kw_only=True):
    """A type of fast network, and the libraries that support it. ``devices`` is a pattern for the
    names of the network's RDMA devices.
    """

    name: str
    fix: str
    devices: str = ""
    verbs: str = ""
    ucx: str = ""
    providers: tuple[str, ...] = ()
    mtl: tuple[str, ...] = ()
    btl: tuple[str, ...] = ()

    @property
    def shown(self) -> str:
        """The name of the network as its vendor spells it, such as ``InfiniBand``."""
        return " ".join(_SHOWN.get(word, word) for word in self.name.split(" "))


class Interfaces(Row, frozen=True, kw_only=True):
    """Prefixes of the names of network interfaces.

    ``side_by_side`` is for interfaces that a job can use in parallel if their names have the same prefix,
    such as ``hsn0`` and ``hsn1``. ``fleeting`` is for temporary interfaces, which a container engine creates
    and removes.
    """

    fast: tuple[str, ...]
    side_by_side: tuple[str, ...]
    virtual: tuple[str, ...]
    fleeting: tuple[str, ...]


_SHOWN = {
    "infiniband": "InfiniBand",
    "roce": "RoCE",
    "iwarp": "iWARP",
    "efa": "EFA",
    "omni-path": "Omni-Path",
}
_SHOWN |= {name: name.capitalize() for name in ("slingshot", "aries")}
_LINKED = {"InfiniBand": "infiniband", "Ethernet": "roce"}
"""The name of the network for each link layer of an RDMA port."""


class OpenIb(Row, frozen=True, kw_only=True):
    """Version bounds of the Open MPI releases whose component openib uses a fast network by default:
    ``versions`` for InfiniBand, ``ethernet`` for RoCE and iWARP.
    """

    versions: str
    ethernet: str

    def serves(self, row: Fabric, version: str) -> bool:
        """Return whether the component openib of Open MPI ``version`` uses the network ``row`` by default."""
        return within(version, self.ethernet if row.name in {"roce", "iwarp"} else self.versions)


class Small(Row, frozen=True, kw_only=True):
    """A minimum memory size: programs may fail with less than ``small`` bytes of memory."""

    small: int


class LockLimits(Small, frozen=True, kw_only=True):
    """Limits of locked memory: RDMA may fail with less than ``small`` bytes, and NCCL fails with ``refused``
    bytes or less.
    """

    refused: int


class FabricKnowledge(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of ``fabric.toml``."""

    fabric: tuple[Fabric, ...]
    interfaces: Interfaces
    openib: OpenIb
    locked_memory: LockLimits
    shared_memory: Small


@cache
def fabric() -> FabricKnowledge:
    """Return the content of ``fabric.toml``."""
    return read("fabric", FabricKnowledge)


def fabrics_of(
    devices: tuple[str, ...], names: tuple[str, ...], links: dict[str, str] | None = None
) -> tuple[Fabric, ...]:
    """Return the fast networks of a host.

    ``devices`` are the names of the host's RDMA devices. ``names`` are the names of networks that the probe
    found in other ways. ``links`` maps RDMA devices to their link layers, which decide between InfiniBand and
    RoCE, because many network cards support both.
    """
    rows = fabric().fabric
    found = [row for device in devices if (row := _of_device(device, (links or {}).get(device, "")))]
    named = {row.name for row in found}
    found += [next(r for r in rows if r.name == n) for n in names if n not in named and n in _names()]
    return tuple(dict.fromkeys(found))


def is_fleeting(interface: str) -> bool:
    """Return whether the name of a network interface starts with a prefix of temporary interfaces.

    A container engine creates such an interface with a container, and removes both together.
    """
    return interface.startswith(fabric().interfaces.fleeting)


def between_nodes(interfaces: Iterable[str]) -> tuple[str, ...]:
    """Return the interfaces that may reach other nodes: all except virtual and temporary interfaces."""
    known = fabric().interfaces
    return tuple(name for name in interfaces if not name.startswith((*known.virtual, *known.fleeting)))


def fastest(interfaces: Iterable[str]) -> tuple[str, ...]:
    """Return the first interface of a fast network, and the interfaces that a job can use in parallel with
    it, such as ``hsn0`` and ``hsn1``. Return an empty tuple if no interface is fast.
    """
    known = fabric().interfaces
    fast = [name for name in interfaces if name.startswith(known.fast)]
    beside = next((kind for kind in known.side_by_side if fast and fast[0].startswith(kind)), None)
    return tuple(fast[:1] if beside is None else (name for name in fast if name.startswith(beside)))


def _of_device(device: str, link: str) -> Fabric | None:
    row = next((r for r in fabric().fabric if r.devices and re.search(r.devices, device)), None)
    name = _LINKED.get(link)
    if row is None or name is None or not set(row.name.split(" ")) & set(_LINKED.values()):
        return row
    return msgspec.structs.replace(row, name=name)


def _names() -> set[str]:
    return {row.name for row in fabric().fabric}
