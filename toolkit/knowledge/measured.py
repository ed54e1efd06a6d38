"""Read ``measured.toml``: the releases, kinds of launch and rules that the project has tested with real
launches.
"""

from functools import cache

import msgspec

from toolkit.knowledge.reading import read


class MeasuredLaunches(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of ``measured.toml``.

    An entry about a release has the form ``NAME SERIES``, such as ``pmix 4.2``. :mod:`toolkit.engine.basis`
    defines the form of the entries in ``launches``.
    """

    ranks_per_node: int
    launches: frozenset[str]
    slurm: frozenset[str]
    runtimes: frozenset[str]
    servers: frozenset[str]
    libraries: frozenset[str]
    mounted: frozenset[str]
    rules: frozenset[str]
    """Ids of the rules that decided the outcome of a recorded launch."""


@cache
def measured_launches() -> MeasuredLaunches:
    """Return the content of ``measured.toml``."""
    return read("measured", MeasuredLaunches)
