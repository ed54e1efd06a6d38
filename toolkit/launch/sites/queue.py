"""Find the reasons why Slurm would refuse a job: its partition, account, QOS or array size."""

from collections.abc import Iterator, Mapping

from toolkit.knowledge import sbatch
from toolkit.launch.sites.detect import partition_of
from toolkit.launch.sites.limits import problems
from toolkit.model.finding import LaunchFault
from toolkit.model.job import JobSpec
from toolkit.model.sitefacts import PartitionFacts, SiteFacts
from toolkit.near import suggest_near


def queue_faults(spec: JobSpec, facts: SiteFacts) -> Iterator[LaunchFault]:
    """Yield the reasons why the cluster would refuse a job; an unknown fact is not a reason.

    Args:
        spec: the job, with all its sbatch options.
        facts: the partitions and accounts of the cluster.
    """
    named = any(sbatch.reserved_name(line, ("partition", "p")) for line in spec.sbatch)
    if facts.partitions and not named:
        yield from _partitions(spec, facts.partitions)
    yield from _accounts(spec, facts)


def array_faults(spec: JobSpec, settings: Mapping[str, str]) -> Iterator[LaunchFault]:
    """Yield a fault if the job's array is larger than Slurm permits.

    Args:
        spec: the job.
        settings: the settings in the output of ``scontrol show config``.
    """
    size = settings.get("MaxArraySize", "")
    if not spec.array or not size.isdigit() or (largest := _largest(spec.array)) < int(size):
        return
    if spec.sweep:
        yield LaunchFault(
            f"--sweep: the sweep has {largest + 1} tasks; Slurm allows at most {size} (MaxArraySize)",
            "split the sweep into several launches",
        )
    else:
        most = int(size) - 1
        yield LaunchFault(
            f"--array {spec.array}: Slurm allows task numbers up to {most} (MaxArraySize {size})",
            "use smaller task numbers",
        )


def _largest(array: str) -> int:
    """Return the largest task number in an ``--array`` value.

    >>> _largest("3,0-96:8%2")
    96
    """
    tasks = array.partition("%")[0].split(",")
    return max(int(part.partition(":")[0].rpartition("-")[2]) for part in tasks)


def _partitions(spec: JobSpec, partitions: tuple[PartitionFacts, ...]) -> Iterator[LaunchFault]:
    names = [part.name for part in partitions]
    wanted = [name for name in (spec.partition or "").split(",") if name]
    if not wanted and not any(part.default for part in partitions):
        yield LaunchFault("Slurm has no default partition", f"give `--partition` {' or '.join(names)}")
    for name in wanted:
        if name not in names:
            yield LaunchFault(
                f"--partition {name}: unknown partition{suggest_near(name, names)}",
                f"choose one of these partitions: {', '.join(names)}",
            )
    counted = any(part.gpus for part in partitions)
    if spec.gpus_per_node and all(part.gpus == 0 for part in partitions):
        yield LaunchFault(
            f"--gpus-per-node {spec.gpus_per_node}: Slurm lists no GPUs in any partition of the cluster",
            "leave out `--gpus-per-node`",
        )
    chosen = [part for part in partitions if (part.name in wanted if wanted else part.default)]
    for part in chosen:
        if not part.up:
            yield LaunchFault(
                f"partition {part.name} is down", _other_partitions(spec, partitions, part, counted)
            )
        for problem in problems(spec, partition_of(part, gpus_counted=counted)):
            message = f"{problem.option}: partition {part.name} has {problem.limit}"
            yield LaunchFault(message, _other_partitions(spec, partitions, part, counted))


def _other_partitions(
    spec: JobSpec, partitions: tuple[PartitionFacts, ...], partition: PartitionFacts, gpus_counted: bool
) -> str:
    fitting = [
        part.name
        for part in partitions
        if part != partition
        and part.up
        and not any(problems(spec, partition_of(part, gpus_counted=gpus_counted)))
    ]
    return f"give `--partition` {' or '.join(fitting)}" if fitting else "request fewer resources"


def _accounts(spec: JobSpec, facts: SiteFacts) -> Iterator[LaunchFault]:
    rows = facts.associations
    if not rows:
        return
    accounts = list(dict.fromkeys(row.account for row in rows))
    wanted = (spec.account or "").lower()  # sbatch also changes account names to lower case
    if wanted and wanted not in accounts:
        yield LaunchFault(
            f"--account {spec.account}: not one of your accounts{suggest_near(wanted, accounts)}",
            f"choose one of your accounts: {', '.join(accounts)}",
        )
        return
    charged = [row for row in rows if row.account == wanted or not wanted]
    allowed = list(dict.fromkeys(qos for row in charged for qos in row.qos))
    if spec.qos and allowed and spec.qos not in allowed:
        yield LaunchFault(
            f"--qos {spec.qos}: your account cannot use this QOS{suggest_near(spec.qos, allowed)}",
            f"choose a QOS of your account: {', '.join(allowed)}",
        )
