"""``measured.toml``: the releases, launches and rules that recorded launches cover."""

from functools import cache

import msgspec

from toolkit.knowledge.reading import read


class MeasuredLaunches(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the recorded launches cover. Releases are ``NAME SERIES``; :mod:`toolkit.engine.basis` defines how
    a launch is written.
    """

    ranks_per_node: int
    launches: frozenset[str]
    slurm: frozenset[str]
    runtimes: frozenset[str]
    servers: frozenset[str]
    libraries: frozenset[str]
    mounted: frozenset[str]
    rules: frozenset[str]
    """Ids of rules that decided a recorded launch."""


@cache
def measured_launches() -> MeasuredLaunches:
    """Return the content of ``measured.toml``."""
    return read("measured", MeasuredLaunches)
