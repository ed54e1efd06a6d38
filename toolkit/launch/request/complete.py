"""Complete a job with values that depend on its site, its trainer or its array."""

from collections.abc import Mapping

import msgspec

from toolkit.errors import BadInput
from toolkit.launch.request import sweep_values
from toolkit.launch.request.layers import JobLayer, MergedJob, merge
from toolkit.launch.sites import partition
from toolkit.launch.sites.share import PARTITION_FIELDS
from toolkit.model.job import JobSpec
from toolkit.model.jobfile import JobFile
from toolkit.model.site import Site
from toolkit.scheduler.times import minutes

WARNING = 120
"""The default number of seconds between Slurm's warning signal and the time limit.

After the signal, a trainer writes a checkpoint.
"""

OUTPUT_OF_ARRAY = "output-%a.log"
"""The default output file of an array task. Each task has a separate file, because the lines of several tasks
would mix in one file."""

_SHORTEST = 10
"""The shortest time limit, in minutes, for which a trainer gets a warning signal by default.

A shorter job does not need a checkpoint.
"""

_RESOURCE_FIELDS = (
    "nodes", "ranks_per_node", "cpus_per_rank", "gpus_per_node", "gpu", "memory", "memory_per_cpu", "time",
    "partition", "constraint", "sbatch",
)  # fmt: skip
"""The job fields that determine which partition can run the job."""


def complete_job(merged_job: MergedJob, site: Site | None) -> MergedJob:
    """Return the job with its array, partition, cores per rank, warning signal and output file.

    Raises:
        BadInput: if the requested partition cannot run the job; if the user requests no partition, and no
            partition of the site can run the job; or if the options for arrays and sweeps conflict.
    """
    merged_job = _with_array(_with_partition(merged_job, site) if site else merged_job)
    job = merged_job.job
    layers = []
    if job.warning is None and _can_stop(job, site):
        layers.append(JobLayer("default of trainers", JobFile(warning=WARNING)))
    if job.array and merged_job.origins.get("output") == "default":
        layers.append(JobLayer("default of arrays", JobFile(output=OUTPUT_OF_ARRAY)))
    if not layers:
        return merged_job
    more = merge(layers)
    completed_job = merge([JobLayer("", job), *layers])
    return MergedJob(completed_job.job, {**merged_job.origins, **more.origins}, merged_job.note)


def _with_array(merged_job: MergedJob) -> MergedJob:
    """Return the job with a job array for its sweep: one task for each combination of values.

    Raises:
        BadInput: if the job has both an array and a sweep, or ``--sweep-parallel`` without a sweep.
    """
    job, origins = merged_job.job, merged_job.origins
    if not job.sweep:
        if job.sweep_parallel is not None and origins["sweep_parallel"].startswith("-"):
            raise BadInput(
                "--sweep-parallel: needs --sweep",
                fix="to limit how many tasks of an array run at once: `--array 0-7%2`",
            )
        return merged_job
    if job.array:
        raise BadInput(
            f"{origins['array']}: cannot be combined with a sweep, which sets the array; "
            "leave out the array or the sweep",
            fix="to limit how many tasks run at once: `--sweep-parallel N`",
        )
    array = sweep_values.array(job.sweep, job.sweep_parallel)
    return MergedJob(
        msgspec.structs.replace(job, array=array), {**origins, "array": "sweep"}, merged_job.note
    )


def _with_partition(merged_job: MergedJob, site: Site) -> MergedJob:
    """Return the job in a partition that can run it, with cores, memory and features that fit there."""
    job, origins = merged_job.job, dict(merged_job.origins)
    values = {field: value for field, value in job.given_values().items() if field in _RESOURCE_FIELDS}
    of_site = f"site {job.site}"
    unsaid = [f for f in ("partition", *PARTITION_FIELDS) if f not in values or origins.get(f) == of_site]
    spec = JobSpec(name="", image="", command=(), directory="", **values)  # type: ignore[arg-type]
    try:
        choice = partition.choose(spec, site, job.site or "", unsaid)
    except BadInput as error:
        raise BadInput(error.message, fix=error.fix, detail=_elsewhere(values, origins, of_site)) from None
    specification, part = choice.spec, choice.partition
    if part is None:
        return merged_job
    reasons = {
        "partition": choice.reason,
        "cpus_per_rank": f"{part.cores} cores of a node in {part.name}",
        "memory": f"memory of a node in {part.name}",
        "constraint": "",
    }
    for field, reason in reasons.items():
        value = getattr(specification, field)
        if value != getattr(spec, field):
            job = msgspec.structs.replace(job, **{field: value or None})
            origins[field] = reason
    note = f"partition {part.name}: {choice.reason}" if choice.reason else ""
    return MergedJob(job, origins, note)


def _elsewhere(values: Mapping[str, object], origins: Mapping[str, str], site_origin: str) -> list[str]:
    """Return a line such as ``nodes = 2 <- toolkit.toml`` for each field whose value comes from settings,
    environment variables or a job file.

    ``site_origin`` is the text in ``origins`` for values of the site profile, such as ``site juwels``.
    """
    places = {field: origins.get(field, "") for field in values}
    return [
        f"{field} = {values[field]} <- {place}"
        for field, place in places.items()
        if place not in {"", "default", site_origin} and not place.startswith("-")
    ]


def _can_stop(job: JobFile, site: Site | None) -> bool:
    if job.trainer is None or job.time is None or (site and site.scheduler != "slurm"):
        return False
    limit = minutes(job.time)
    return limit is not None and limit >= _SHORTEST
