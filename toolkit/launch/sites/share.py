"""Fit the cores per rank, the memory and the features of a job to one partition."""

from collections.abc import Collection
from typing import NamedTuple

import msgspec

from toolkit.launch.sites.limits import LimitExceeded, megabytes, problems
from toolkit.model.job import JobSpec
from toolkit.model.site import Partition, Site

PARTITION_FIELDS = ("cpus_per_rank", "memory", "constraint")
"""The job fields whose default in a site profile is valid only for the default partition."""

_MIXED = 2
"""If a partition has at least this number of features, toolkit assumes that its nodes differ in hardware."""


class PartitionFit(NamedTuple):
    """A job that toolkit adapted to a partition, and the partition's limits that the adapted job exceeds."""

    partition: Partition
    spec: JobSpec
    problems: tuple[LimitExceeded, ...]


def trial(spec: JobSpec, partition: Partition, site: Site, unset_fields: Collection[str]) -> PartitionFit:
    """Return the job with values that fit a partition.

    toolkit changes only the fields in ``unset_fields``, which the user did not set. If the cores per rank are
    unset, or the profile's default does not fit a node, each rank gets an equal share of a node's cores.
    toolkit reduces a memory request that exceeds a node's memory, and removes a constraint that the nodes do
    not meet.
    """
    limit_problems = _problems(spec, partition, site)
    kinds = {problem.kind for problem in limit_problems}
    changes: dict[str, int | str | None] = {}
    too_many = "cores" in kinds or (spec.memory_per_cpu and "memory" in kinds)
    if "cpus_per_rank" in unset_fields and (spec.cpus_per_rank is None or too_many):
        changes["cpus_per_rank"] = cores_of_rank(spec, partition)
    most = partition.memory_mb
    if "memory" in unset_fields and spec.memory and most and megabytes(spec.memory) > most:
        changes["memory"] = f"{most}M"
    if "constraint" in unset_fields and "features" in kinds:
        changes["constraint"] = ""
    if not changes:
        return PartitionFit(partition, spec, limit_problems)
    fitted = msgspec.structs.replace(spec, **changes)
    return PartitionFit(partition, fitted, _problems(fitted, partition, site))


def cores_of_rank(spec: JobSpec, partition: Partition) -> int | None:
    """Return a rank's share of a node's cores, or ``None`` if the number of cores is unknown.

    A job that requests a part of a node's GPUs gets the same part of the node's cores. A job that requests
    memory per core gets only as many cores as fit into the node's memory.
    """
    # The site profile contains only the largest number of cores of a node.
    # Nodes with different features may have fewer cores, so a rank's share is unknown.
    if not partition.cores or len(partition.features) >= _MIXED:
        return None
    cores = partition.cores
    if spec.gpus_per_node and partition.gpus:
        cores = cores * min(spec.gpus_per_node, partition.gpus) // partition.gpus
    core_memory = megabytes(spec.memory_per_cpu) if spec.memory_per_cpu else 0
    if core_memory and partition.memory_mb:
        cores = min(cores, int(partition.memory_mb / core_memory))
    return max(1, cores // spec.ranks_per_node)


def _problems(spec: JobSpec, partition: Partition, site: Site) -> tuple[LimitExceeded, ...]:
    most = max((part.gpus or 0 for part in site.partitions), default=0)
    whole = msgspec.structs.replace(spec, sbatch=(*site.defaults.sbatch, *spec.sbatch))
    return tuple(problems(whole, partition, most))
