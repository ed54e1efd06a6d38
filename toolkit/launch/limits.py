"""Refuse what a site cannot give before it is submitted, with its limits and who would take it; pure."""

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from toolkit.errors import BadInput
from toolkit.launch.times import minutes
from toolkit.model.job import JobSpec
from toolkit.model.site import Partition, Site
from toolkit.near import near

_UNITS = {"K": 1 / 1024, "M": 1.0, "G": 1024.0, "T": 1024.0 * 1024}


class Problem(NamedTuple):
    """What of a job a partition cannot give, and the fields of a partition of which any one would tell."""

    text: str
    told_by: tuple[str, ...]


def check_limits(spec: JobSpec, site: Site, name: str) -> None:
    """Hold a job against what the profile of the site ``name`` says; what it leaves open is not judged.

    Raises:
        BadInput: naming the option, the limit, and the partitions that would take the job.
    """
    if not site.partitions:
        return
    spec = msgspec.structs.replace(spec, sbatch=(*site.defaults.sbatch, *spec.sbatch))
    for wanted in (spec.partition or "").split(","):
        partition = site.partition(wanted)
        if partition is None and wanted:
            known = ", ".join(p.name for p in site.partitions)
            raise BadInput(
                f"--partition {wanted}: site {name} has no such partition"
                f"{near(wanted, (p.name for p in site.partitions))}; choices: {known}"
            )
        problem = next(problems(spec, partition), None) if partition else None
        if partition and problem:
            raise BadInput(
                f"{problem.text} (site {name}, partition {partition.name})", fix=_advice(spec, problem, site)
            )
    _check_gpus_anywhere(spec, site, name)


def _advice(spec: JobSpec, problem: Problem, site: Site) -> str:
    """Name the partitions that take the job; of one whose limit is not known nobody can say that."""
    needed = [problem.told_by, *([("gpus",)] if spec.gpus_per_node else [])]
    known = (p for p in site.partitions if all(_tells(p, fields) for fields in needed))
    others = [p.name for p in known if not any(problems(spec, p))]
    if others:
        return f"--partition {' or '.join(others)}"
    return "ask for less: no partition is known to take it"


def _tells(partition: Partition, fields: tuple[str, ...]) -> bool:
    return any(getattr(partition, field) not in (None, "", ()) for field in fields)


def _check_gpus_anywhere(spec: JobSpec, site: Site, name: str) -> None:
    """Refuse more GPUs than any partition is known to have, also for one of which nothing is known."""
    most = max((p.gpus or 0 for p in site.partitions), default=0)
    if most and (spec.gpus_per_node or 0) > most:
        having = " or ".join(p.name for p in site.partitions if p.gpus == most)
        raise BadInput(
            f"--gpus-per-node {spec.gpus_per_node}: no partition is known to have more than {most} "
            f"(site {name})",
            fix=f"--gpus-per-node {most} --partition {having}",
        )


def problems(spec: JobSpec, partition: Partition) -> Iterator[Problem]:
    """Yield what of a job a partition cannot give, each with the limit."""
    yield from _time(spec, partition)
    most = min((n for n in (partition.max_nodes, partition.nodes) if n), default=None)
    if most and spec.nodes > most:
        yield Problem(f"--nodes {spec.nodes}: at most {most} nodes", ("max_nodes", "nodes"))
    if partition.cores:
        yield from _cores(spec, partition, partition.cores)
    yield from _memory(spec, partition)
    yield from _gpus(spec, partition)
    # What is joined by | or by brackets is Slurm's to judge.
    features = spec.constraint.split("&") if not set(spec.constraint) & set("|[]()*,") else []
    for feature in features if partition.features else []:
        if feature and feature not in partition.features:
            having = ", ".join(partition.features)
            yield Problem(f"--constraint {feature}: its nodes have {having}", ("features",))


def _time(spec: JobSpec, partition: Partition) -> Iterator[Problem]:
    most = minutes(partition.max_time) if partition.max_time else None
    asked = minutes(spec.time)
    if most is not None and (asked is None or asked > most):
        yield Problem(f"--time {spec.time}: at most {partition.max_time}", ("max_time",))


def _cores(spec: JobSpec, partition: Partition, cores: int) -> Iterator[Problem]:
    asked = spec.ranks_per_node * (spec.cpus_per_rank or 1)
    if asked > cores * _threads(spec, partition):
        each = f" with --cpus-per-rank {spec.cpus_per_rank}" if spec.cpus_per_rank else ""
        yield Problem(f"--ranks-per-node {spec.ranks_per_node}{each}: a node has {cores} cores", ("cores",))


def _threads(spec: JobSpec, partition: Partition) -> int:
    """Return how many ranks a core of a node may be given to.

    Where a rank has a number of cores, the script asks for whole ones: one hardware thread of each. It does
    not where several partitions are named, and an option of the person's or the site's own has the last word.
    """
    own = any(line.startswith(("--threads-per-core", "--hint")) for line in spec.sbatch)
    whole = spec.cpus_per_rank and "," not in (spec.partition or "")
    return 1 if whole and not own else partition.threads or 1


def _memory(spec: JobSpec, partition: Partition) -> Iterator[Problem]:
    if not partition.memory_mb:
        return
    if spec.memory and _megabytes(spec.memory) > partition.memory_mb:
        yield Problem(f"--memory {spec.memory}: a node has {partition.memory_mb}M for jobs", ("memory_mb",))
    cpus = spec.ranks_per_node * (spec.cpus_per_rank or 1)
    if spec.memory_per_cpu and _megabytes(spec.memory_per_cpu) * cpus > partition.memory_mb:
        yield Problem(
            f"--memory-per-cpu {spec.memory_per_cpu}: {cpus} cores of a node would take more than the "
            f"{partition.memory_mb}M that it has for jobs",
            ("memory_mb",),
        )


def _gpus(spec: JobSpec, partition: Partition) -> Iterator[Problem]:
    wanted = spec.gpus_per_node or 0
    if partition.gpus is not None and wanted > partition.gpus:
        having = f"a node has {partition.gpus}" if partition.gpus else "its nodes have none"
        yield Problem(f"--gpus-per-node {wanted}: {having}", ("gpus",))
    if spec.gpu and partition.gpu and spec.gpu != partition.gpu:
        yield Problem(f"--gpu {spec.gpu}: its nodes have {partition.gpu}", ("gpu",))


def _megabytes(size: str) -> float:
    unit = size[-1] if size[-1] in _UNITS else "M"
    return int(size.rstrip("".join(_UNITS))) * _UNITS[unit]
