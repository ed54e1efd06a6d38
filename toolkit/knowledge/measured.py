"""``measured.toml``: what the recorded launches cover."""

from functools import cache

import msgspec

from toolkit.knowledge.reading import read


class MeasuredLaunches(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Releases as ``NAME SERIES`` and launches, as :mod:`toolkit.engine.basis` writes them."""

    ranks_per_node: int
    launches: frozenset[str]
    slurm: frozenset[str]
    runtimes: frozenset[str]
    servers: frozenset[str]
    libraries: frozenset[str]
    mounted: frozenset[str]
    rules: frozenset[str]
    """Rules that decided a recorded launch."""


@cache
def measured_launches() -> MeasuredLaunches:
    """Return what the recorded launches cover."""
    return read("measured", MeasuredLaunches)
