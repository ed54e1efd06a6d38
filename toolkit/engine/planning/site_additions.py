"""Add threads, network, temporary files, mounts and GPUs to a plan, from site profile, facts and request.

"Network" means the network interface for the sockets of NCCL and Gloo. For NCCL, toolkit may choose the
interface even without a site profile. The user's settings have precedence over the site profile's settings.
"""

from fnmatch import fnmatchcase

import msgspec

from toolkit.engine.traits import nvidia_options, runtime_of
from toolkit.knowledge.fabric import between_nodes, fabric, fastest
from toolkit.launcher import site_launcher
from toolkit.model.facts import HostFacts, ImageFacts
from toolkit.model.prediction import Plan, Request
from toolkit.model.site import Site

JOB_DIR = "TOOLKIT_JOB_DIR"
"""In the container, the variable that contains the path of the run's folder. toolkit's trainers stop when
they find the file ``stop-asked`` in this folder.
"""

_INTEL = "libiomp5.so"
_TMP = "/tmp"  # noqa: S108 - the name of a folder, not a temporary file
_NARROWEST = 4
"""Minimum number of cores per rank with which TensorFlow may run two operations in parallel."""


def add_site_settings(
    plan: Plan, host: HostFacts, image: ImageFacts, request: Request, site: Site | None
) -> Plan:
    """Return the plan with the additions that site profile, facts and request require."""
    kind, container = runtime_of(host), list(plan.container)
    of_amd = image.pytorch_rocm or (host.amd_gpus and not host.gpus)
    gpus = kind.AMD_GPUS if of_amd else nvidia_options(host, image)
    if request.gpus and not set(gpus) <= set(container):
        container += gpus
    folder = request.workdir or ("" if kind.KEEPS_FOLDER else request.directory)
    if folder:
        container += kind.workdir(folder)
    return msgspec.structs.replace(
        plan,
        launcher=_launcher(plan, host, request, site),
        container=tuple(container),
        env={**environment(plan, host, image, request, site), **plan.env},
        unset=tuple(name for name in plan.unset if not _is_kept(name, site)),
        binds=tuple(dict.fromkeys((*plan.binds, *_binds(site), *request.binds))),
    )


def environment(
    plan: Plan, host: HostFacts, image: ImageFacts, request: Request, site: Site | None
) -> dict[str, str]:
    """Return the variables that toolkit sets in the container, unless the plan or the user sets these
    variables.
    """
    return {
        **({JOB_DIR: request.directory} if request.directory else {}),
        **_threads(request, image),
        **_network(plan, host, request, site),
        **_temporary(host, site),
        **_user_site(request, image),
        **(site.env if site else {}),
    }


def _threads(request: Request, image: ImageFacts) -> dict[str, str]:
    """Return variables that give a rank one thread per core. With more threads than cores, some threads would
    wait for a core; with fewer threads, some cores would be idle.
    """
    cores = request.cpus_per_rank
    if cores is None:
        return {}
    found = {
        "OMP_NUM_THREADS": str(cores),
        "TF_NUM_INTRAOP_THREADS": str(cores),
        "TF_NUM_INTEROP_THREADS": "2" if cores >= _NARROWEST else "1",
    }
    if image.libraries and _INTEL in image.libraries:
        # Threads of Intel's OpenMP spin between operations, and take CPU time from TensorFlow's own threads.
        found |= {"KMP_BLOCKTIME": "1", "KMP_AFFINITY": "granularity=fine,compact,1,0"}
    return found


def _network(plan: Plan, host: HostFacts, request: Request, site: Site | None) -> dict[str, str]:
    """Return variables that name the site profile's network interface for sockets. If the site profile names
    no interface, toolkit names interfaces only for NCCL on nodes with several interfaces.
    """
    if request.nodes == 1:
        return {}
    if site and site.network:
        found = {"NCCL_SOCKET_IFNAME": site.network} if request.gpus else {}
        if plan.mode == "gloo":
            found["HOROVOD_GLOO_IFACE"] = site.network
        if plan.program == "torch":
            found["GLOO_SOCKET_IFNAME"] = site.network
        if site.fabric.lower() == "ethernet":
            found["UCX_NET_DEVICES"] = site.network
        return found
    return _nccl(host) if request.gpus and len(host.interfaces or ()) > 1 else {}


def _nccl(host: HostFacts) -> dict[str, str]:
    """Return NCCL_SOCKET_IFNAME with the names of the fast interfaces. If no interface is fast, the value is
    ``^`` and the prefixes of the interfaces that NCCL must not use.

    ``^`` excludes interfaces (NCCL user guide, NCCL_SOCKET_IFNAME). If the value would exclude all
    interfaces, NCCL_SOCKET_IFNAME stays unset and NCCL chooses an interface. Also exclude interfaces without
    a route: NCCL fails on an InfiniBand interface that has no IP address: 'Bootstrap : no socket interface
    found' (marin-community/marin issue 7018).
    """
    there = between_nodes(host.interfaces or ())
    usable = between_nodes(host.interfaces_routed) or there
    if fast := fastest(usable):
        return {"NCCL_SOCKET_IFNAME": ",".join(fast)}
    known = fabric().interfaces
    idle = (name for name in there if not any(used.startswith(name) for used in usable))
    nowhere = ",".join(("lo", *known.virtual, *known.fleeting, *idle))
    return {"NCCL_SOCKET_IFNAME": f"^{nowhere}"} if usable else {}


def _user_site(request: Request, image: ImageFacts) -> dict[str, str]:
    """Return PYTHONNOUSERSITE=1, which prevents Python from loading packages of the home folder instead of
    the image's packages.
    """
    return {"PYTHONNOUSERSITE": "1"} if image.python and not request.user_site else {}


def _temporary(host: HostFacts, site: Site | None) -> dict[str, str]:
    """Return a TMPDIR that exists in the container: the site's scratch folder, or /tmp. The result is
    empty if the site profile has no scratch folder and the host's TMPDIR is unset or is /tmp.
    """
    if site and site.scratch:
        return {"TMPDIR": site.scratch}
    if host.tmpdir and host.tmpdir != _TMP:
        return {"TMPDIR": _TMP}
    return {}


def _binds(site: Site | None) -> tuple[str, ...]:
    if site is None:
        return ()
    scratch = (site.scratch,) if site.scratch and site.scratch != _TMP else ()
    return (*site.container.binds, *scratch)


def _is_kept(name: str, site: Site | None) -> bool:
    return site is not None and any(fnmatchcase(name, pattern) for pattern in site.keep)


def _launcher(plan: Plan, host: HostFacts, request: Request, site: Site | None) -> tuple[str, ...]:
    command, *planned = plan.launcher
    if plan.inside:
        return plan.launcher
    launcher = site_launcher(site, command)
    command = command if command.endswith(launcher.COMMAND) else launcher.COMMAND
    return (command, *launcher.words(tuple(planned), host, request, site))
