"""``fabric.toml``: fast networks, and what an image needs to use them."""

import re
from functools import cache

import msgspec

from toolkit.knowledge.reading import Row, read


class Fabric(Row, frozen=True, kw_only=True):
    """A kind of network device, and by what libraries reach it; ``devices`` is a pattern."""

    name: str
    fix: str
    devices: str = ""
    verbs: str = ""
    ucx: str = ""
    providers: tuple[str, ...] = ()
    mtl: tuple[str, ...] = ()
    btl: tuple[str, ...] = ()


class Releases(Row, frozen=True, kw_only=True):
    """Releases of a program for which something holds."""

    versions: str


class Small(Row, frozen=True, kw_only=True):
    """A size in bytes below which programs fail, or may."""

    small: int


class FabricKnowledge(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``fabric.toml``."""

    fabric: tuple[Fabric, ...]
    openib: Releases
    locked_memory: Small
    shared_memory: Small


@cache
def fabric() -> FabricKnowledge:
    """Return what is known of fast networks."""
    return read("fabric", FabricKnowledge)


def fabrics_of(devices: tuple[str, ...], seen: tuple[str, ...]) -> tuple[Fabric, ...]:
    """Return the networks of a host: by the names of its RDMA devices, and by what else was seen."""
    rows = fabric().fabric
    by_device = [next((r for r in rows if r.devices and re.search(r.devices, d)), None) for d in devices]
    found = [row for row in by_device if row is not None]
    named = {row.name for row in found}
    found += [next(r for r in rows if r.name == n) for n in seen if n not in named and n in _names()]
    return tuple(dict.fromkeys(found))


def _names() -> set[str]:
    return {row.name for row in fabric().fabric}
