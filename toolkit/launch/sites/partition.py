"""Choose the partition of a job, and cores, memory and features that fit this partition."""

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

import msgspec

from toolkit.errors import BadInput
from toolkit.knowledge import sbatch
from toolkit.launch.sites.limits import states
from toolkit.launch.sites.share import PartitionFit, trial
from toolkit.model.job import JobSpec
from toolkit.model.site import Partition, Site
from toolkit.near import suggest_near

_LESS = "request fewer resources"
"""The fix in the error message if no partition can run a job."""


class PartitionChoice(NamedTuple):
    """A job, and the partition that toolkit chose for the job.

    ``spec`` names the partition, and has cores, memory and features that fit the partition. ``partition`` is
    ``None`` if the profile does not describe the partition, or if the job names several partitions.
    ``reason`` says why toolkit chose a partition that is neither the user's choice nor the default. For any
    other partition, ``reason`` is empty.
    """

    spec: JobSpec
    partition: Partition | None = None
    reason: str = ""


def choose(spec: JobSpec, site: Site, name: str, unset_fields: Collection[str] = ()) -> PartitionChoice:
    """Return the job in a partition that can run it.

    A job that names a partition stays in this partition. For a job without a partition, toolkit chooses one
    of the partitions that can run the job. An unknown limit does not exclude a partition.

    toolkit prefers the partition with the fewest unknown limits. If several partitions have equally few,
    toolkit chooses the default partition if it is one of them, else the first of them in the profile. toolkit
    counts an unknown limit of a partition only if the job exceeds the same kind of limit in the default
    partition. If the job requests GPUs, toolkit also counts unknown GPU limits.

    Args:
        spec: the job.
        site: the profile of its site.
        name: the name of the profile.
        unset_fields: the fields among ``partition`` and ``PARTITION_FIELDS`` that the user did not set; these
            fields are empty or have the profile's defaults.

    Raises:
        BadInput: if a partition that the job names cannot run it; the error names partitions that can run it.
            Also if no partition can run the job; the error then lists the limits of each partition.
    """
    if not site.partitions:
        return PartitionChoice(spec)
    by_sbatch = _named_by_sbatch(spec, site)
    if "partition" in unset_fields and not by_sbatch:
        return _first(spec, site, name, unset_fields)
    named = [_find(wanted, site, name) for wanted in (by_sbatch or spec.partition or "").split(",")]
    # If the job names several partitions, do not change its cores, memory or constraint, because the nodes of
    # these partitions may differ.
    trials = [
        trial(spec, partition, site, unset_fields if len(named) == 1 else ())
        for partition in named
        if partition
    ]
    for fit in trials:
        if fit.problems:
            alternatives = [part for part in site.partitions if part.name != fit.partition.name]
            raise _refusal(fit, [trial(spec, part, site, unset_fields) for part in alternatives], name)
    return (
        PartitionChoice(trials[0].spec, trials[0].partition)
        if len(named) == len(trials) == 1
        else PartitionChoice(spec)
    )


def _first(spec: JobSpec, site: Site, name: str, unset_fields: Collection[str]) -> PartitionChoice:
    """Return the job in the default partition, or in another partition that can run it."""
    # If the profile has no default partition, assume a partition with unknown limits: Slurm's default.
    usual = site.partition() or Partition(name="")
    trials = [trial(spec, part, site, unset_fields) for part in dict.fromkeys((usual, *site.partitions))]
    fitting = [fit for fit in trials if not fit.problems]
    if not fitting:
        first, *more = (fit for fit in trials if fit.partition.name)
        raise _refusal(first, more, name)
    kinds = _kinds(trials[0])
    best = min(fitting, key=lambda fit: len(_unstated_limits(fit.partition, kinds)))
    if best.partition is usual:
        return PartitionChoice(best.spec, site.partition())
    chosen = msgspec.structs.replace(best.spec, partition=best.partition.name)
    return PartitionChoice(chosen, best.partition, _why(trials[0], best, kinds))


def _why(default_fit: PartitionFit, best: PartitionFit, kinds: Sequence[str]) -> str:
    """Return the reason why toolkit chose the partition of ``best`` instead of the default partition."""
    if not default_fit.partition.name:
        return "the profile names no default partition"
    default = f"the default partition {default_fit.partition.name}"
    if not default_fit.problems:
        unstated = " and ".join(_unstated_limits(default_fit.partition, kinds))
        return f"the profile does not state the limits of {default} for {unstated}"
    why = f"{default} has {_limits(default_fit)}"
    unknown = " and ".join(_unstated_limits(best.partition, kinds))
    return (
        f"{why}; the profile does not state the limits of {best.partition.name} for {unknown}"
        if unknown
        else why
    )


def _refusal(fit: PartitionFit, alternatives: Sequence[PartitionFit], site: str) -> BadInput:
    """Return the error for a partition that cannot run a job; the fix names partitions that can run it."""
    fitting = [fit.partition for fit in alternatives if not fit.problems]
    if alternatives and not fitting:
        return _nowhere([fit, *alternatives], site)
    kinds = _kinds(fit)
    known = [part.name for part in fitting if not _unstated_limits(part, kinds)]
    unknown = [part.name for part in fitting if _unstated_limits(part, kinds)]
    fix = f"give `--partition` {' or '.join(known or unknown)}" if fitting else _LESS
    if unknown:
        fix += f"; limits of {', '.join(unknown)} are unknown"
    options = ", ".join(problem.option for problem in fit.problems)
    message = f"{options}: partition {fit.partition.name} has {_limits(fit)} (site {site})"
    return BadInput(message, fix=fix)


def _nowhere(trials: Sequence[PartitionFit], site: str) -> BadInput:
    """Return the error for a job that no partition can run; the error lists each partition's limits."""
    options = dict.fromkeys(problem.option for fit in trials for problem in fit.problems)
    limits: dict[str, list[str]] = {}
    for fit in trials:
        limits.setdefault(_limits(fit), []).append(fit.partition.name)
    limits_text = "; ".join(f"{', '.join(names)}: {having}" for having, names in limits.items())
    return BadInput(
        f"{', '.join(options)}: no partition of site {site} can run this job ({limits_text})", fix=_LESS
    )


def _kinds(fit: PartitionFit) -> list[str]:
    """Return the kinds of limits that toolkit compares when it looks for another partition: limits that the
    job exceeds in the partition of ``fit`` and, if the job requests GPUs, the GPU limits.
    """
    kinds = [problem.kind for problem in fit.problems]
    if fit.spec.gpus_per_node:
        kinds += ["GPUs", *(["GPU type"] if fit.spec.gpu else [])]
    return list(dict.fromkeys(kinds))


def _unstated_limits(partition: Partition, kinds: Iterable[str]) -> list[str]:
    """Return the kinds of limits in ``kinds`` that the profile does not state for a partition."""
    return [kind for kind in kinds if not states(partition, kind)]


def _limits(fit: PartitionFit) -> str:
    return " and ".join(dict.fromkeys(problem.limit for problem in fit.problems))


def _find(partition_name: str, site: Site, name: str) -> Partition | None:
    """Return the partition with this name. For an empty name, return the default partition, or ``None``.

    Raises:
        BadInput: if the profile has no partition with this name.
    """
    partition = site.partition(partition_name)
    if partition is None and partition_name:
        known = [part.name for part in site.partitions]
        raise BadInput(
            f"--partition {partition_name}: site {name} has no such partition"
            f"{suggest_near(partition_name, known)}; choices: {', '.join(known)}"
        )
    return partition


def _named_by_sbatch(spec: JobSpec, site: Site) -> str:
    """Return the partition in the last sbatch option that sets a partition, such as ``-p gpus``, or an empty
    string.
    """
    for line in reversed((*site.defaults.sbatch, *spec.sbatch)):
        if sbatch.is_one_option(line) and sbatch.reserved_name(line, ("partition", "p")):
            option, *more = sbatch.words(line)
            return option.partition("=")[2] or "".join(more) or option[2:]
    return ""
