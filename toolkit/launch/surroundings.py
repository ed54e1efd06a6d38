"""What ranks find around them: threads, network, temporary files, binding, GPUs; from site and facts; pure.

An explicit choice of a person wins over all of it.
"""

from dataclasses import dataclass
from fnmatch import fnmatchcase

import msgspec

from toolkit.engine.traits import built_for_gpus
from toolkit.knowledge.fabric import between_nodes, fabric, fastest
from toolkit.launch.header import has_gpus
from toolkit.model.facts import HostFacts, ImageFacts
from toolkit.model.job import JobSpec
from toolkit.model.prediction import Plan
from toolkit.model.progress import Tell
from toolkit.model.site import Site

JOB_DIR = "TOOLKIT_JOB_DIR"
"""The variable inside the container that names the job's folder, where ``stop-asked`` appears."""

_INTEL = "libiomp5.so"
_TMP = "/tmp"  # noqa: S108 - the folder that every runtime mounts
_NARROWEST = 4
"""Cores from which a second operation of TensorFlow beside the first one is worth a thread."""


@dataclass(frozen=True, slots=True)
class Around:
    """What is known around a job; each may be unknown."""

    site: Site | None = None
    host: HostFacts | None = None
    image: ImageFacts | None = None


def settled(spec: JobSpec, plan: Plan, around: Around) -> Plan:
    """Return the plan with what site, facts and specification add to it."""
    container = list(plan.container)
    if has_gpus(spec, around.site) and "--nv" not in container:
        container.append("--nv")
    if spec.workdir:
        container += ["--pwd", spec.workdir]
    return msgspec.structs.replace(
        plan,
        launcher=_launcher(spec, plan, around),
        container=tuple(container),
        env={**environment(spec, plan, around), **plan.env},
        unset=tuple(name for name in plan.unset if not _kept(name, around.site)),
        binds=(*plan.binds, *_binds(around.site)),
    )


def tell_idle(name: str, spec: JobSpec, around: Around, tell: Tell) -> None:
    """Say of an image, by its name, that it computes on GPUs where a job asks for none of those there."""
    if idle := _idle_gpus(spec, around):
        tell.step(f"{name} computes on GPUs, and the job asks for none: --gpus-per-node {idle}")


def _idle_gpus(spec: JobSpec, around: Around) -> int:
    """Return how many GPUs of a node its image could compute on, and the job does not ask for."""
    if spec.gpus_per_node is not None or has_gpus(spec, around.site):
        return 0
    if around.image is None or not built_for_gpus(around.image):
        return 0
    if around.host is not None:
        return len(around.host.gpus or ()) if around.host.gpu_driver else 0
    partition = around.site.partition(spec.partition or "") if around.site else None
    return (partition.gpus or 0) if partition else 0


def environment(spec: JobSpec, plan: Plan, around: Around) -> dict[str, str]:
    """Return the variables that are set inside the container unless plan or person say otherwise."""
    site = around.site
    return {
        JOB_DIR: spec.directory,
        **_threads(spec, around.image),
        **_network(spec, plan, around),
        **_temporary(around),
        **(site.env if site else {}),
    }


def _threads(spec: JobSpec, image: ImageFacts | None) -> dict[str, str]:
    """Give a rank as many threads as it has cores; more would take turns, fewer leave cores idle."""
    cores = spec.cpus_per_rank
    if cores is None:
        return {}
    found = {
        "OMP_NUM_THREADS": str(cores),
        "TF_NUM_INTRAOP_THREADS": str(cores),
        "TF_NUM_INTEROP_THREADS": "2" if cores >= _NARROWEST else "1",
    }
    if image is not None and image.libraries and _INTEL in image.libraries:
        # Threads of Intel's OpenMP spin between operations, in the way of TensorFlow's own.
        found |= {"KMP_BLOCKTIME": "1", "KMP_AFFINITY": "granularity=fine,compact,1,0"}
    return found


def _network(spec: JobSpec, plan: Plan, around: Around) -> dict[str, str]:
    """Name the interface where there is a choice; fast networks find themselves."""
    if spec.nodes == 1:
        return {}
    site, gpus = around.site, has_gpus(spec, around.site)
    if site and site.network:
        found = {"NCCL_SOCKET_IFNAME": site.network} if gpus else {}
        if plan.mode == "gloo":
            found["HOROVOD_GLOO_IFACE"] = site.network
        if site.fabric.lower() == "ethernet":
            found["UCX_NET_DEVICES"] = site.network
        return found
    host = around.host
    return _nccl(host) if gpus and host and len(host.interfaces or ()) > 1 else {}


def _nccl(host: HostFacts) -> dict[str, str]:
    """Name fast interfaces, or those that lead nowhere behind ``^``: NCCL takes a list of prefixes.

    (NCCL user guide, NCCL_SOCKET_IFNAME.) Where all would be shut out, NCCL is left to choose. One of
    InfiniBand without an address carries no sockets: 'Bootstrap : no socket interface found'
    (marin-community/marin issue 7018).
    """
    there = between_nodes(host.interfaces or ())
    usable = between_nodes(host.interfaces_routed) or there
    if fast := fastest(usable):
        return {"NCCL_SOCKET_IFNAME": ",".join(fast)}
    known = fabric().interfaces
    idle = (name for name in there if not any(used.startswith(name) for used in usable))
    nowhere = ",".join(("lo", *known.virtual, *known.fleeting, *idle))
    return {"NCCL_SOCKET_IFNAME": f"^{nowhere}"} if usable else {}


def _temporary(around: Around) -> dict[str, str]:
    """Keep temporary files on a disk of the node, in a folder that the container has."""
    if around.site and around.site.scratch:
        return {"TMPDIR": around.site.scratch}
    if around.host and around.host.tmpdir and around.host.tmpdir != _TMP:
        return {"TMPDIR": _TMP}
    return {}


def _binds(site: Site | None) -> tuple[str, ...]:
    if site is None:
        return ()
    scratch = (site.scratch,) if site.scratch and site.scratch != _TMP else ()
    return (*site.container.binds, *scratch)


def _kept(name: str, site: Site | None) -> bool:
    return site is not None and any(fnmatchcase(name, pattern) for pattern in site.keep)


def _launcher(spec: JobSpec, plan: Plan, around: Around) -> tuple[str, ...]:
    site, name = around.site, plan.launcher[0]
    if site and site.launch.launcher == "aprun":
        return ("aprun", *_depth(spec), *site.launch.srun)
    if name != "srun":
        return plan.launcher
    more = list(site.launch.srun) if site else []
    words = [word for word in plan.launcher[1:] if not (_mpi_of(site, plan) and word.startswith("--mpi="))]
    if mpi := _mpi_of(site, plan):
        words.insert(0, f"--mpi={mpi}")
    if spec.cpu_bind:
        more = [word for word in more if not word.startswith("--cpu-bind")]
        words.append(f"--cpu-bind={spec.cpu_bind}")
    elif spec.cpus_per_rank and _binds_cpus(around) and not any(w.startswith("--cpu-bind") for w in more):
        words.append("--cpu-bind=cores")
    if spec.gpu_bind:
        # Without it every rank sees all GPUs of its node, which NCCL's ways between GPUs rest on.
        words.append(f"--gpu-bind={spec.gpu_bind}")
    return (name, *words, *more)


def _mpi_of(site: Site | None, plan: Plan) -> str:
    return site.launch.mpi if site and plan.mode in {"srun-pmix", "srun-pmi2", "bind"} else ""


def _binds_cpus(around: Around) -> bool:
    """Tell whether Slurm can bind ranks to cores: it needs a plugin for it (srun(1), --cpu-bind)."""
    if around.host and around.host.slurm and around.host.slurm.settings:
        plugins = around.host.slurm.settings.get("TaskPlugin", "")
        return "affinity" in plugins or "cgroup" in plugins
    return around.site is not None


def _depth(spec: JobSpec) -> tuple[str, ...]:
    """Return aprun's words for the cores of a rank, one hardware thread of each."""
    return ("-d", str(spec.cpus_per_rank), "-j", "1", "-cc", "depth") if spec.cpus_per_rank else ("-j", "1")
