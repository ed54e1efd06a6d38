"""What site, facts and request add to a launch: threads, network, temporary files, binding, GPUs; pure.

What the user sets wins over all of it.
"""

from fnmatch import fnmatchcase

import msgspec

from toolkit.engine.traits import runtime_of
from toolkit.knowledge.fabric import between_nodes, fabric, fastest
from toolkit.launcher import at
from toolkit.model.facts import HostFacts, ImageFacts
from toolkit.model.prediction import Plan, Request
from toolkit.model.site import Site

JOB_DIR = "TOOLKIT_JOB_DIR"
"""The variable inside the container that names the folder of the run, where ``stop-asked`` appears."""

_INTEL = "libiomp5.so"
_TMP = "/tmp"  # noqa: S108 - the folder that every runtime mounts
_NARROWEST = 4
"""Cores from which a second operation of TensorFlow beside the first one is worth a thread."""


def surrounded(plan: Plan, host: HostFacts, image: ImageFacts, request: Request, site: Site | None) -> Plan:
    """Return the plan with what site, facts and request add to it."""
    kind, container = runtime_of(host), list(plan.container)
    gpus = kind.AMD_GPUS if image.pytorch_rocm else kind.GPUS
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
    """Return the variables that are set inside the container unless the plan or the user sets them."""
    return {
        **({JOB_DIR: request.directory} if request.directory else {}),
        **_threads(request, image),
        **_network(plan, host, request, site),
        **_temporary(host, site),
        **_user_site(request, image),
        **(site.env if site else {}),
    }


def _threads(request: Request, image: ImageFacts) -> dict[str, str]:
    """Give a rank as many threads as it has cores; more would take turns, fewer leave cores idle."""
    cores = request.cpus_per_rank
    if cores is None:
        return {}
    found = {
        "OMP_NUM_THREADS": str(cores),
        "TF_NUM_INTRAOP_THREADS": str(cores),
        "TF_NUM_INTEROP_THREADS": "2" if cores >= _NARROWEST else "1",
    }
    if image.libraries and _INTEL in image.libraries:
        # Threads of Intel's OpenMP spin between operations, in the way of TensorFlow's own.
        found |= {"KMP_BLOCKTIME": "1", "KMP_AFFINITY": "granularity=fine,compact,1,0"}
    return found


def _network(plan: Plan, host: HostFacts, request: Request, site: Site | None) -> dict[str, str]:
    """Name the interface where there is a choice; fast networks find themselves."""
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


def _user_site(request: Request, image: ImageFacts) -> dict[str, str]:
    """Leave out the packages of the home folder, which a Python reads before the packages of the image."""
    return {"PYTHONNOUSERSITE": "1"} if image.python and not request.user_site else {}


def _temporary(host: HostFacts, site: Site | None) -> dict[str, str]:
    """Keep temporary files on a disk of the node, in a folder that the container has."""
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
    launcher = at(site, command)
    command = command if command.endswith(launcher.COMMAND) else launcher.COMMAND
    return (command, *launcher.words(tuple(planned), host, request, site))
