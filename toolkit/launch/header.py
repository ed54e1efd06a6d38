"""The ``#SBATCH`` lines (or ``#COBALT`` ones) of a job: every field that says something; pure."""

from collections.abc import Iterator

from toolkit.errors import BadInput
from toolkit.launch.times import minutes
from toolkit.model.job import JobSpec
from toolkit.model.site import Site

SIGNAL = "USR1"
"""What Slurm sends to the script before the time limit."""

_NOT_OF_COBALT = (
    "qos", "constraint", "nodelist", "exclude", "array", "begin", "gpus_per_node", "gpu", "gpu_bind",
    "cpu_bind", "chain", "elastic", "requeue", "warning", "memory", "memory_per_cpu", "reservation",
    "licenses", "exclusive", "mail_type",
)  # fmt: skip
"""Fields of a job that neither Cobalt nor aprun are told."""


def sbatch_lines(spec: JobSpec, site: Site | None = None) -> list[str]:
    """Return what stands behind ``#SBATCH``, a line each; all values were checked."""
    site_lines = site.defaults.sbatch if site else ()
    pairs = [
        ("job-name", spec.name),
        ("nodes", nodes(spec)),
        # An elastic job has as many as its nodes make.
        ("ntasks", None if spec.elastic else spec.ranks),
        ("ntasks-per-node", spec.ranks_per_node),
        ("cpus-per-task", spec.cpus_per_rank),
        ("threads-per-core", 1 if spec.cpus_per_rank and threads(spec, site) > 1 else None),
        ("mem", spec.memory),
        ("mem-per-cpu", spec.memory_per_cpu),
        ("time", spec.time),
        ("partition", spec.partition),
        ("account", spec.account),
        ("qos", spec.qos),
        ("constraint", _constraint(spec, site)),
        ("reservation", spec.reservation),
        ("nodelist", spec.nodelist),
        ("exclude", spec.exclude),
        ("licenses", spec.licenses),
        ("array", spec.array),
        ("dependency", spec.dependency),
        ("begin", spec.begin),
        ("mail-type", spec.mail_type),
        ("mail-user", spec.mail_user),
    ]
    lines = [f"--{name}={value}" for name, value in pairs if value not in (None, "")]
    lines += [f"--{line}" for line in _gpus(spec, site)]
    lines += ["--exclusive"] * spec.exclusive + ["--requeue"] * spec.requeue
    # Slurm takes a dead node out of the job, and leaves the others to it.
    lines += ["--no-kill"] * spec.elastic
    # The signal goes to the script alone (B:), which tells the trainer.
    lines += [f"--signal=B:{SIGNAL}@{spec.warning}"] * bool(spec.warning)
    lines += [f"--output={spec.output}", *([f"--error={spec.error}"] if spec.error else [])]
    # A job that is started again adds to what it wrote before.
    return [*lines, "--open-mode=append", *dict.fromkeys((*site_lines, *spec.sbatch))]


def cobalt_lines(spec: JobSpec, site: Site) -> list[str]:
    """Return what stands behind ``#COBALT``; Cobalt knows a part of what Slurm does.

    Raises:
        BadInput: for a field that Cobalt has nothing for, or a job without a limit.
    """
    for name in _NOT_OF_COBALT:
        if getattr(spec, name):
            raise BadInput(
                f"--{name.replace('_', '-')}: Cobalt at this site has no such option; leave it out"
            )
    limit = minutes(spec.time)
    if limit is None:
        raise BadInput(
            f"--time {spec.time}: Cobalt takes no job without a limit", fix="write MINUTES or HH:MM:SS"
        )
    pairs = [
        ("-n", spec.nodes),
        ("-t", limit),
        ("-q", spec.partition),
        ("-A", spec.account),
        ("--jobname", spec.name),
        ("-o", spec.output),
        ("-e", spec.error),
        ("-M", spec.mail_user),
        ("--dependencies", spec.dependency.partition(":")[2] or None),
    ]
    lines = [f"{name} {value}" for name, value in pairs if value not in (None, "")]
    return [*lines, *dict.fromkeys((*site.defaults.sbatch, *spec.sbatch))]


def nodes(spec: JobSpec) -> str:
    """Return how many nodes are asked for: a number, or for an elastic job from the least to the most."""
    return f"{spec.nodes}" if spec.least_nodes == spec.nodes else f"{spec.least_nodes}-{spec.nodes}"


def threads(spec: JobSpec, site: Site | None) -> int:
    """Return the hardware threads of a core in the job's partition; 1 where they are not known."""
    partition = site.partition(spec.partition or "") if site else None
    return (partition.threads if partition else None) or 1


def has_gpus(spec: JobSpec, site: Site | None) -> bool:
    """Tell whether ranks get GPUs: they are asked for, or come with the partition."""
    if spec.gpus_per_node is not None:
        return spec.gpus_per_node > 0
    partition = site.partition(spec.partition or "") if site else None
    comes = site is not None and site.gpus.ask in {"partition", "constraint"}
    return comes and bool(partition and partition.gpus)


def _gpus(spec: JobSpec, site: Site | None) -> Iterator[str]:
    count = spec.gpus_per_node
    if not count:
        return
    ask, name = (site.gpus.ask, site.gpus.gres) if site else ("gres", "gpu")
    if ask == "gres":
        kind = f":{spec.gpu}" if spec.gpu and ":" not in name else ""
        yield f"gres={name}{kind}:{count}"
    elif ask == "gpus-per-node":
        yield f"gpus-per-node={f'{spec.gpu}:' if spec.gpu else ''}{count}"


def _constraint(spec: JobSpec, site: Site | None) -> str:
    """Return the features that nodes must have; some sites give out GPUs by one."""
    if spec.constraint or site is None or site.gpus.ask != "constraint" or not spec.gpus_per_node:
        return spec.constraint
    return site.gpus.gres
