"""The table of all strategies and their frameworks. A strategy distributes a training over ranks.

:mod:`toolkit.trainers.ranks.world` defines the interface of strategies.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from toolkit.trainers.kinds import FrameworkName


@dataclass(frozen=True, slots=True)
class Strategy:
    """An entry of the table. ``module`` is the name of the strategy's module in this package. ``world`` is
    the name of the strategy's class in that module.
    """

    module: str
    world: str
    framework: FrameworkName = "tensorflow"


STRATEGIES: Mapping[str, Strategy] = MappingProxyType(
    {
        "single": Strategy("single", "Single"),
        "horovod": Strategy("horovod", "Horovod"),
        "mirrored": Strategy("mirrored", "Mirrored"),
        "multiworker": Strategy("multiworker", "MultiWorker"),
        "mpi-aggregate": Strategy("mpi_aggregate", "MpiAggregate"),
        "hybrid": Strategy("hybrid", "Hybrid"),
        "ps": Strategy("ps", "ParameterServers"),
        "ddp": Strategy("ddp", "DistributedTorch", "pytorch"),
        "fsdp": Strategy("fsdp", "ShardedTorch", "pytorch"),
        "jax": Strategy("jax", "DistributedJax", "jax"),
    }
)


def strategies_of(framework: FrameworkName) -> tuple[str, ...]:
    """Return the names of a framework's strategies, with the default strategy first."""
    return tuple(name for name, row in STRATEGIES.items() if row.framework == framework)
