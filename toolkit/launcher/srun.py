"""Slurm's launcher ``srun``."""

from toolkit.knowledge.pmix import is_plugin
from toolkit.launcher.ranks import RankWords
from toolkit.model.facts import HostFacts
from toolkit.model.job import JobSpec
from toolkit.model.prediction import Request
from toolkit.model.site import Site

COMMAND = "srun"

RANK = RankWords("$SLURM_PROCID", "$SLURM_LOCALID", "$SLURM_NODEID")
"""Source for the variables: srun(1), section OUTPUT ENVIRONMENT VARIABLES."""

NODES, RANKS, NODE_LIST = "\0nodes", "\0ranks", "\0node_list"
"""Placeholders for values that the script of an elastic job (a job with a range of nodes, such as 2 to 4)
computes. The placeholders start with a NUL character, which no text from a user contains.
"""

IN_SHELL = {NODES: '"$nodes"', RANKS: '"$ranks"', NODE_LIST: '"$node_list"'}
"""The shell text that replaces each placeholder in the job script."""


def words(planned: tuple[str, ...], host: HostFacts, request: Request, site: Site | None) -> tuple[str, ...]:
    """Return srun's options: first the options in the launch plan (``planned``), then the options in the site
    profile.
    """
    made, more = list(planned), list(site.launch.srun) if site else []
    if site and (mpi := _site_mpi(site, made)):
        made = [f"--mpi={mpi}", *(word for word in made if not word.startswith("--mpi="))]
    if request.cpu_bind:
        more = [word for word in more if not word.startswith("--cpu-bind")]
        made.append(f"--cpu-bind={request.cpu_bind}")
    elif request.cpus_per_rank and _binds(host, site) and not any(w.startswith("--cpu-bind") for w in more):
        made.append("--cpu-bind=cores")
    if request.gpu_bind:
        # Without --gpu-bind, every rank sees all GPUs of its node.
        # NCCL needs access to all GPUs of a node for direct transfers between the GPUs.
        made.append(f"--gpu-bind={request.gpu_bind}")
    return (*made, *more)


def counts(spec: JobSpec) -> list[str]:
    """Return the options for the numbers of nodes and ranks. With these options, srun stops all ranks if one
    rank fails.
    """
    nodes, ranks = (NODES, RANKS) if spec.elastic else (str(spec.nodes), str(spec.ranks))
    return [
        f"--nodes={nodes}",
        f"--ntasks={ranks}",
        f"--ntasks-per-node={spec.ranks_per_node}",
        *([f"--nodelist={NODE_LIST}"] if spec.elastic else []),
        # Without this option, ranks wait in a collective for a failed rank until the time limit (srun(1)).
        "--kill-on-bad-exit=1",
        "--label",
    ]


def _site_mpi(site: Site, planned: list[str]) -> str:
    """Return the site profile's value of ``--mpi``; empty if the launch plan needs another kind of interface,
    such as PMI-2 instead of PMIx.
    """
    kind = next((word.removeprefix("--mpi=") for word in planned if word.startswith("--mpi=")), "none")
    if kind == "none" or is_plugin(site.launch.mpi) != is_plugin(kind):
        return ""
    return site.launch.mpi


def _binds(host: HostFacts, site: Site | None) -> bool:
    """Return whether Slurm can bind ranks to cores, which needs a task plugin (srun(1), --cpu-bind)."""
    if host.slurm and host.slurm.settings:
        plugins = host.slurm.settings.get("TaskPlugin", "")
        return "affinity" in plugins or "cgroup" in plugins
    return site is not None
