"""Compare a job with the limits of a partition."""

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
"""For each kind of limit, the fields of a partition in a site profile that state the limit."""

_UNITS = {"K": 1 / 1024, "M": 1.0, "G": 1024.0, "T": 1024.0 * 1024}


class LimitExceeded(NamedTuple):
    """A partition limit that a job exceeds.

    ``option`` is the job's request as a command-line option, such as ``--nodes 9``. ``limit`` completes the
    message "partition NAME has", for example with ``a limit of 8 nodes``. ``kind`` is the kind of limit, such
    as ``nodes`` or ``memory``.
    """

    option: str
    limit: str
    kind: str


def states(partition: Partition, kind: str) -> bool:
    """Return whether a site profile states a kind of limit for a partition."""
    return any(getattr(partition, field) not in (None, "", ()) for field in _STATED_BY[kind])


def problems(spec: JobSpec, partition: Partition, most_gpus: int = 0) -> Iterator[LimitExceeded]:
    """Yield every known limit of a partition that a job exceeds.

    Args:
        spec: the job, with all its sbatch options.
        partition: the partition.
        most_gpus: the largest number of GPUs per node in any partition of the site, or 0 if unknown. If the
            number of GPUs in ``partition`` is unknown, toolkit assumes at most ``most_gpus`` GPUs per node.
    """
    yield from _time(spec, partition)
    most = min((n for n in (partition.max_nodes, partition.nodes) if n), default=None)
    if most and spec.nodes > most:
        yield LimitExceeded(f"--nodes {spec.nodes}", f"a limit of {most} nodes", "nodes")
    if partition.cores:
        yield from _cores(spec, partition, partition.cores)
    yield from _memory(spec, partition)
    yield from _gpus(spec, partition, most_gpus)
    # Only Slurm can evaluate a constraint with | or brackets.
    features = spec.constraint.split("&") if not set(spec.constraint) & set("|[]()*,") else []
    for feature in features if partition.features else []:
        if feature and feature not in partition.features:
            having = ", ".join(partition.features)
            yield LimitExceeded(f"--constraint {feature}", f"nodes with {having}", "features")


def _time(spec: JobSpec, partition: Partition) -> Iterator[LimitExceeded]:
    most = minutes(partition.max_time) if partition.max_time else None
    wanted_minutes = minutes(spec.time)
    if most is not None and (wanted_minutes is None or wanted_minutes > most):
        yield LimitExceeded(f"--time {spec.time}", f"a time limit of {partition.max_time}", "time")


def _cores(spec: JobSpec, partition: Partition, cores: int) -> Iterator[LimitExceeded]:
    cores_per_rank = spec.cpus_per_rank or 1
    if spec.ranks_per_node * cores_per_rank > cores * _threads(spec, partition):
        option = (
            f"--ranks-per-node {spec.ranks_per_node}"
            if spec.ranks_per_node > 1 or cores_per_rank == 1
            else ""
        )
        option += (
            f"{' with ' if option else ''}--cpus-per-rank {cores_per_rank}" if cores_per_rank > 1 else ""
        )
        yield LimitExceeded(option, f"{cores} cores per node", "cores")


def _threads(spec: JobSpec, partition: Partition) -> int:
    """Return how many hardware threads of each physical core the ranks can use.

    If the job sets the number of cores per rank, the job script requests whole cores with one hardware thread
    each. If the job names several partitions, the script requests hardware threads. An sbatch option of the
    user or the site, such as ``--hint``, overrides the script's request.
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


def _gpus(spec: JobSpec, partition: Partition, largest: int) -> Iterator[LimitExceeded]:
    wanted = spec.gpus_per_node or 0
    option = f"--gpus-per-node {wanted}"
    if partition.gpus is not None and wanted > partition.gpus:
        having = (
            f"{partition.gpus} GPU{'s' * (partition.gpus != 1)} per node" if partition.gpus else "no GPUs"
        )
        yield LimitExceeded(option, having, "GPUs")
    elif partition.gpus is None and largest and wanted > largest:
        yield LimitExceeded(
            option, f"an unknown number of GPUs (other partitions have at most {largest} per node)", "GPUs"
        )
    if spec.gpu and partition.gpu and spec.gpu != partition.gpu:
        yield LimitExceeded(f"--gpu {spec.gpu}", f"{partition.gpu} GPUs", "GPU type")


def megabytes(size: str) -> float:
    """Convert a size in Slurm's form, such as ``16G``, to MiB."""
    unit = size[-1] if size[-1] in _UNITS else "M"
    return int(size.rstrip("".join(_UNITS))) * _UNITS[unit]
