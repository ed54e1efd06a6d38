"""Slurm: the ``sbatch`` options at the head of a job script."""

from collections.abc import Iterator

import msgspec

from toolkit.model.job import JobSpec
from toolkit.model.jobfile import FIELDS
from toolkit.model.site import Site

NAME = "slurm"
TEMPLATE = "job.sh.j2"
SUBMIT_DIR = "$SLURM_SUBMIT_DIR"

JOB = "$SLURM_JOB_ID"
NODES = 'scontrol show hostnames "$SLURM_JOB_NODELIST"'
ADDRESS = "scontrol --oneliner show node \"$first\" | sed -n 's/.* NodeAddr=\\([^ ]*\\) .*/\\1/p'"
"""sbatch(1) and scontrol(1) describe the variables and commands in ``JOB``, ``NODES`` and ``ADDRESS``. Slurm
runs a job script on the job's first node.
"""

SIGNAL = "USR1"
"""The signal that Slurm sends to the job script ``spec.warning`` seconds before the job's time limit."""


def header(spec: JobSpec, site: Site | None = None) -> list[str]:
    """Return the options at the head of the job script, without the word ``#SBATCH``.

    This function does not check the values in ``spec``; the caller must check them.
    """
    site_lines = site.defaults.sbatch if site else ()
    spec = msgspec.structs.replace(spec, constraint=_constraint(spec, site))
    pairs = [
        ("job-name", spec.name),
        ("nodes", _nodes(spec)),
        # The number of ranks of an elastic job depends on how many nodes Slurm allocates to the job.
        ("ntasks", None if spec.elastic else spec.ranks),
        ("ntasks-per-node", spec.ranks_per_node),
        ("cpus-per-task", spec.cpus_per_rank),
        ("threads-per-core", 1 if spec.cpus_per_rank and site and site.threads(spec.partition) > 1 else None),
        *((field.sbatch, getattr(spec, field.name)) for field in FIELDS if field.sbatch),
    ]
    lines = [f"--{name}={value}" for name, value in pairs if value not in (None, "")]
    lines += [f"--{line}" for line in _gpus(spec, site)]
    lines += ["--exclusive"] * spec.exclusive + ["--requeue"] * spec.requeue
    # With --no-kill, Slurm removes a failed node from the job, and the job continues on the other nodes.
    lines += ["--no-kill"] * spec.elastic
    # With B: in --signal, Slurm signals only the job script, which then asks the trainer to stop.
    lines += [f"--signal=B:{SIGNAL}@{spec.warning}"] * bool(spec.warning)
    lines += [f"--output={spec.output}", *([f"--error={spec.error}"] if spec.error else [])]
    # With --open-mode=append, Slurm keeps the earlier output of a restarted job, and appends new output.
    return [*lines, "--open-mode=append", *dict.fromkeys((*site_lines, *spec.sbatch))]


def _nodes(spec: JobSpec) -> str:
    """Return the number of nodes that the job requests. For an elastic job, return a range such
    as ``2-4``.
    """
    return f"{spec.nodes}" if spec.least_nodes == spec.nodes else f"{spec.least_nodes}-{spec.nodes}"


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
    """Return the node features that the job requires; at some sites, a feature selects nodes with GPUs."""
    if spec.constraint or site is None or site.gpus.ask != "constraint" or not spec.gpus_per_node:
        return spec.constraint
    return site.gpus.gres
