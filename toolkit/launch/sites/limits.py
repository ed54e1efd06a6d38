"""Compare a job with the limits of one partition; pure."""

from collections.abc import Iterator
from typing import NamedTuple

from toolkit.model.job import JobSpec
from toolkit.model.site import Partition
from toolkit.scheduler.times import minutes

_STATED_BY = {
    "time": ("max_time",),
    "nodes": ("max_nodes", "nodes"),
    "cores": ("cores",),
    "memory": ("memory_mb",),
    "GPUs": ("gpus",),
    "GPU type": ("gpu",),
    "features": ("features",),
}
"""Kind of limit → the fields of a partition that state it; one of them is enough."""

_UNITS = {"K": 1 / 1024, "M": 1.0, "G": 1024.0, "T": 1024.0 * 1024}


class LimitExceeded(NamedTuple):
    """A limit that a job exceeds.

    ``option`` is the request as on the command line (``--nodes 9``). ``limit`` describes the partition's
    limit, as the object of "has" (``a limit of 8 nodes``). ``kind`` names the limit.
    """

    option: str
    limit: str
    kind: str


def states(partition: Partition, kind: str) -> bool:
    """Return whether a profile states a kind of limit of a partition."""
    return any(getattr(partition, field) not in (None, "", ()) for field in _STATED_BY[kind])


def problems(spec: JobSpec, partition: Partition, most_gpus: int = 0) -> Iterator[LimitExceeded]:
    """Yield every known limit of a partition that a job exceeds; an unknown limit forbids nothing.

    Args:
        spec: the job, with all options of sbatch.
        partition: the partition.
        most_gpus: the most GPUs per node that any partition of the site is known to have, 0 if that is
            unknown; a partition whose GPUs are unknown is taken to have no more.
    """
    yield from _time(spec, partition)
    most = min((n for n in (partition.max_nodes, partition.nodes) if n), default=None)
    if most and spec.nodes > most:
        yield LimitExceeded(f"--nodes {spec.nodes}", f"a limit of {most} nodes", "nodes")
    if partition.cores:
        yield from _cores(spec, partition, partition.cores)
    yield from _memory(spec, partition)
    yield from _gpus(spec, partition, most_gpus)
    # Only Slurm can judge features joined by | or in brackets.
    features = spec.constraint.split("&") if not set(spec.constraint) & set("|[]()*,") else []
    for feature in features if partition.features else []:
        if feature and feature not in partition.features:
            having = ", ".join(partition.features)
            yield LimitExceeded(f"--constraint {feature}", f"nodes with {having}", "features")


def _time(spec: JobSpec, partition: Partition) -> Iterator[LimitExceeded]:
    most = minutes(partition.max_time) if partition.max_time else None
    asked = minutes(spec.time)
    if most is not None and (asked is None or asked > most):
        yield LimitExceeded(f"--time {spec.time}", f"a time limit of {partition.max_time}", "time")


def _cores(spec: JobSpec, partition: Partition, cores: int) -> Iterator[LimitExceeded]:
    each = spec.cpus_per_rank or 1
    if spec.ranks_per_node * each > cores * _threads(spec, partition):
        option = f"--ranks-per-node {spec.ranks_per_node}" if spec.ranks_per_node > 1 or each == 1 else ""
        option += f"{' with ' if option else ''}--cpus-per-rank {each}" if each > 1 else ""
        yield LimitExceeded(option, f"{cores} cores per node", "cores")


def _threads(spec: JobSpec, partition: Partition) -> int:
    """Return how many ranks may share a core.

    If a rank has a number of cores, the script asks for whole cores: one hardware thread of each. The script
    asks for hardware threads if the job names several partitions. An sbatch option of the user or of the site
    overrides this.
    """
    own = any(line.startswith(("--threads-per-core", "--hint")) for line in spec.sbatch)
    whole = spec.cpus_per_rank and "," not in (spec.partition or "")
    return 1 if whole and not own else partition.threads or 1


def _memory(spec: JobSpec, partition: Partition) -> Iterator[LimitExceeded]:
    if not partition.memory_mb:
        return
    limit = f"{partition.memory_mb}M of memory per node"
    if spec.memory and megabytes(spec.memory) > partition.memory_mb:
        yield LimitExceeded(f"--memory {spec.memory}", limit, "memory")
    cores = spec.ranks_per_node * (spec.cpus_per_rank or 1)
    if spec.memory_per_cpu and megabytes(spec.memory_per_cpu) * cores > partition.memory_mb:
        yield LimitExceeded(f"--memory-per-cpu {spec.memory_per_cpu} for {cores} cores", limit, "memory")


def _gpus(spec: JobSpec, partition: Partition, most: int) -> Iterator[LimitExceeded]:
    wanted = spec.gpus_per_node or 0
    option = f"--gpus-per-node {wanted}"
    if partition.gpus is not None and wanted > partition.gpus:
        having = (
            f"{partition.gpus} GPU{'s' * (partition.gpus != 1)} per node" if partition.gpus else "no GPUs"
        )
        yield LimitExceeded(option, having, "GPUs")
    elif partition.gpus is None and most and wanted > most:
        yield LimitExceeded(option, f"an unknown number of GPUs (others have at most {most})", "GPUs")
    if spec.gpu and partition.gpu and spec.gpu != partition.gpu:
        yield LimitExceeded(f"--gpu {spec.gpu}", f"{partition.gpu} GPUs", "GPU type")


def megabytes(size: str) -> float:
    """Return a size in Slurm's form (``16G``) in MiB."""
    unit = size[-1] if size[-1] in _UNITS else "M"
    return int(size.rstrip("".join(_UNITS))) * _UNITS[unit]
