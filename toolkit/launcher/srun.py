"""Slurm's launcher ``srun``."""

from toolkit.knowledge.pmix import is_plugin
from toolkit.launcher.ranks import RankWords
from toolkit.model.facts import HostFacts
from toolkit.model.job import JobSpec
from toolkit.model.prediction import Request
from toolkit.model.site import Site

COMMAND = "srun"

RANK = RankWords("$SLURM_PROCID", "$SLURM_LOCALID", "$SLURM_NODEID")
"""The variables from which a rank reads its numbers (srun(1), section OUTPUT ENVIRONMENT VARIABLES)."""

NODES, RANKS, NODE_LIST = "\0nodes", "\0ranks", "\0node_list"
"""Placeholders in the srun command of an elastic job (a job with a range of nodes, such as 2 to 4). The job
script computes their values. The placeholders start with a NUL character, which no text from a user contains.
"""

IN_SHELL = {NODES: '"$nodes"', RANKS: '"$ranks"', NODE_LIST: '"$node_list"'}
"""The shell text that replaces each placeholder in the job script."""


def words(
    plan_options: tuple[str, ...], host: HostFacts, request: Request, site: Site | None
) -> tuple[str, ...]:
    """Return srun's options: the options of the launch plan (``plan_options``), the options that bind ranks
    to cores and GPUs, and the options in the site profile.

    If the plan and the site profile both select PMIx, the profile's ``--mpi`` replaces the plan's ``--mpi``.
    The same is true if both select interfaces other than PMIx, such as ``pmi2`` and ``cray_shasta``. A
    ``--cpu-bind`` from the user replaces the site profile's ``--cpu-bind``.
    """
    made, more = list(plan_options), list(site.launch.srun) if site else []
    if site and (mpi := _site_mpi(site, made)):
        made = [f"--mpi={mpi}", *(word for word in made if not word.startswith("--mpi="))]
    if request.cpu_bind:
        more = [word for word in more if not word.startswith("--cpu-bind")]
        made.append(f"--cpu-bind={request.cpu_bind}")
    elif request.cpus_per_rank and _binds(host, site) and not any(w.startswith("--cpu-bind") for w in more):
        made.append("--cpu-bind=cores")
    if request.gpu_bind:
        # By default, toolkit does not set --gpu-bind, so each rank sees all GPUs of its node.
        # NCCL needs all GPUs of a node for direct transfers between these GPUs.
        made.append(f"--gpu-bind={request.gpu_bind}")
    return (*made, *more)


def counts(spec: JobSpec) -> list[str]:
    """Return the options for the numbers of nodes and ranks. The options also make srun stop all ranks if one
    rank fails, and label each line of output with its rank.
    """
    nodes, ranks = (NODES, RANKS) if spec.elastic else (str(spec.nodes), str(spec.ranks))
    return [
        f"--nodes={nodes}",
        f"--ntasks={ranks}",
        f"--ntasks-per-node={spec.ranks_per_node}",
        *([f"--nodelist={NODE_LIST}"] if spec.elastic else []),
        # Without this option, srun does not stop the other ranks if a rank fails (srun(1)).
        # These ranks can then wait for the failed rank until the time limit.
        "--kill-on-bad-exit=1",
        "--label",
    ]


def _site_mpi(site: Site, plan_options: list[str]) -> str:
    """Return the site profile's value of ``--mpi`` if this value replaces the launch plan's value; otherwise,
    return an empty text.

    The value replaces the plan's value if both select PMIx, or if both select interfaces other than PMIx.
    """
    kind = next((word.removeprefix("--mpi=") for word in plan_options if word.startswith("--mpi=")), "none")
    if kind == "none" or is_plugin(site.launch.mpi) != is_plugin(kind):
        return ""
    return site.launch.mpi


def _binds(host: HostFacts, site: Site | None) -> bool:
    """Return whether Slurm can bind ranks to cores, which needs a task plugin (srun(1), --cpu-bind). If
    Slurm's settings are unknown, return whether the job has a site profile.
    """
    if host.slurm and host.slurm.settings:
        plugins = host.slurm.settings.get("TaskPlugin", "")
        return "affinity" in plugins or "cgroup" in plugins
    return site is not None
