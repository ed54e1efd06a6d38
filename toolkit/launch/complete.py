"""Say what nobody said of a job, where it follows from the site or from what the job is; pure."""

from toolkit.launch.layers import Layer, Merged, merge
from toolkit.launch.times import minutes
from toolkit.model.jobfile import JobFile
from toolkit.model.site import Partition, Site

WARNING = 120
"""Seconds before the time limit in which a trainer writes its checkpoint."""

OUTPUT_OF_ARRAY = "output-%a.log"
"""Where each task of an array writes; in one file they would write between each other's lines."""

_SHORTEST = 10
"""Minutes of a time limit below which a job is over before a checkpoint is of use."""

_MIXED = 2
"""Features from which on the nodes of a partition are taken to differ."""


def completed(merged: Merged, site: Site | None) -> Merged:
    """Return the job with cores for each rank, a warning for trainers, and an output for each of an array."""
    job = merged.job
    partition = site.partition(job.partition or "") if site else None
    layers = []
    # Nodes with different features may have different numbers of cores: the profile names the largest.
    if job.cpus_per_rank is None and partition and partition.cores and len(partition.features) < _MIXED:
        source = f"{partition.cores} cores of a node in {partition.name}"
        layers.append(Layer(source, JobFile(cpus_per_rank=cores_of_rank(job, partition))))
    if job.warning is None and _can_stop(job, site):
        layers.append(Layer("default of trainers", JobFile(warning=WARNING)))
    if job.array and merged.origins.get("output") == "default":
        layers.append(Layer("default of arrays", JobFile(output=OUTPUT_OF_ARRAY)))
    if not layers:
        return merged
    more = merge(layers)
    found = merge([Layer("", job), *layers])
    return Merged(found.job, {**merged.origins, **more.origins})


def cores_of_rank(job: JobFile, partition: Partition) -> int:
    """Return a rank's share of a node's cores; who asks for some of its GPUs gets that part of the cores."""
    cores = partition.cores or 1
    if job.gpus_per_node and partition.gpus:
        cores = cores * min(job.gpus_per_node, partition.gpus) // partition.gpus
    return max(1, cores // (job.ranks_per_node or 1))


def _can_stop(job: JobFile, site: Site | None) -> bool:
    if job.trainer is None or job.time is None or (site and site.scheduler != "slurm"):
        return False
    limit = minutes(job.time)
    return limit is not None and limit >= _SHORTEST
