"""Rules about fast networks between nodes: which networks the host has, and whether the image can use them.

No rule in this module changes the predicted outcome: without a fast network, ranks use TCP, at a fraction of
the speed.
"""

from typing import Literal

from toolkit.engine.case import Case
from toolkit.engine.guarded import Undecided, attempt, settle
from toolkit.engine.rule import Hit, rule
from toolkit.engine.traits import runtime_of
from toolkit.engine.words import mpi_name
from toolkit.knowledge import cuda, fabric
from toolkit.knowledge.fabric import Fabric
from toolkit.model.mpifacts import ImageMpi
from toolkit.model.prediction import MPI_MODES
from toolkit.runtime import podman
from toolkit.runtime.enroot import PYXIS, RUNTIME
from toolkit.sonames import plain

_OWN_MPI = tuple(mode for mode in MPI_MODES if mode != "bind")
"""Launch modes in which the image's own MPI sends the messages."""

_CARRIERS = ("image.ucx_transports", "image.libfabric_providers")
_HOST = ("host.infiniband", "host.fabrics")
_BY_VERBS = {"ib", "verbs", "efa"}
"""UCX modules and libfabric providers that open a network device through libibverbs."""
_Way = Literal["fast", "none", "ucx", "libfabric"]
"""What an MPI lacks to use a network. ``fast``: it lacks nothing. ``ucx``: a module of UCX. ``libfabric``: a
provider of libfabric. ``none``: the MPI has no component that could use the network.
"""


def networks(case: Case) -> tuple[Fabric, ...]:
    """Return the host's fast networks; empty for a job on one node."""
    if case.request.nodes == 1:
        return ()
    case.ask(*_HOST)
    return fabric.fabrics_of(case.host.infiniband or (), case.host.fabrics or (), case.host_facts.link_layers)


def _slow_network(case: Case, way: _Way) -> Fabric | None:
    """Return the host's first fast network for which :func:`_way` returns ``way``. Return ``None`` if there
    is no such network. For example, ``ucx`` selects a network for which UCX lacks the module.
    """
    found = networks(case)
    if not found or (mpi := case.image.mpi) is None:
        return None
    return next((row for row in found if _way(case, mpi, row) == way), None)


def _way(case: Case, mpi: ImageMpi, row: Fabric) -> _Way:
    if mpi.implementation == "openmpi":
        return _way_of_open_mpi(case, mpi, row)
    if mpi.implementation == "intelmpi":
        return _by_libfabric(case, row)
    if mpi.implementation != "mpich":
        return "fast"  # an assumption: the facts do not show which networks this MPI can use
    device = mpi.device or ""
    if "ucx" in device:
        return _by_ucx(case, row)
    return _by_libfabric(case, row) if "ofi" in device else "none"


def _way_of_open_mpi(case: Case, mpi: ImageMpi, row: Fabric) -> _Way:
    if not mpi.components:
        raise Undecided("image.mpi.components")
    has = {framework: set(names) for framework, names in mpi.components.items()}
    unasked = fabric.fabric().openib.serves(row, mpi.version or "")
    if set(row.mtl) & has.get("mtl", set()) or (unasked and set(row.btl) & has.get("btl", set())):
        return "fast"
    ways: list[_Way | Undecided] = []
    if "ucx" in has.get("pml", set()) and row.ucx:
        ways.append(attempt(_by_ucx, case, row))
    if "ofi" in has.get("mtl", set()):
        ways.append(attempt(_by_libfabric, case, row))
    return "fast" if "fast" in ways else settle(next(iter(ways), "none"))


def _by_ucx(case: Case, row: Fabric) -> _Way:
    case.ask("image.ucx_transports")
    return "fast" if row.ucx and row.ucx in (case.image.ucx_transports or ()) else "ucx"


def _by_libfabric(case: Case, row: Fabric) -> _Way:
    case.ask("image.libfabric_providers")
    return "fast" if set(row.providers) & set(case.image.libfabric_providers or ()) else "libfabric"


def _evidence(case: Case, row: Fabric, *names: str) -> tuple[str, ...]:
    seen = "host.infiniband" if row.devices and case.host.infiniband else "host.fabrics"
    return case.cite(seen, "image.mpi", *names)


@rule(
    "mpi-lacks-fabric",
    "The MPI in the image cannot use the host's fast network",
    severity="warning",
    fix="use an image whose MPI was built for this network",
    source="recipes/knowledge/fabric.toml, [[fabric]]; open-mpi/ompi:docs/tuning-apps/networking/ofi.rst",
    facts=(*_HOST, "image.mpi", "image.mpi.components", "image.mpi.device", *_CARRIERS),
    modes=_OWN_MPI,
    advice=True,
)
def mpi_lacks_fabric(case: Case) -> Hit | None:
    """An MPI without a component for a network silently uses TCP, often with a tenth of the network's
    bandwidth and ten times the network's latency. The results are correct, but the job is slow. libfabric or
    UCX in the image helps only if the MPI was built to use this library. Open MPI uses libfabric through the
    component mtl/ofi, and UCX through the component pml/ucx.
    """
    row = _slow_network(case, "none")
    if row is None:
        return None
    title = f"{mpi_name(case.image.mpi)} in the image cannot use {row.shown} and would use TCP"
    return Hit(_evidence(case, row), title=title, fix=_another_mpi(row), source=row.source)


def _another_mpi(row: Fabric) -> str:
    """Return the fix for an MPI that has no component for a network. The fix recommends a different MPI,
    because an MPI without the component does not open UCX or libfabric, even if the image contains them.
    """
    if row.mtl:
        return row.fix
    opened = _OPENS_UCX if row.ucx else _OPENS_LIBFABRIC
    return f"use an image whose MPI was built with {opened}; then {row.fix}"


_OPENS_UCX = "UCX (Open MPI: --with-ucx; MPICH: --with-device=ch4:ucx)"
_OPENS_LIBFABRIC = "libfabric (Open MPI: --with-ofi; MPICH: --with-device=ch4:ofi)"


@rule(
    "ucx-lacks-fabric",
    "The UCX in the image has no module for the host's fast network",
    severity="warning",
    fix="install UCX's InfiniBand modules in the image",
    source="recipes/knowledge/fabric.toml, [[fabric]]; openucx/ucx:docs/source/faq.md",
    facts=(*_HOST, "image.mpi", "image.mpi.components", "image.mpi.device", *_CARRIERS),
    modes=_OWN_MPI,
    advice=True,
)
def ucx_lacks_fabric(case: Case) -> Hit | None:
    """The image's MPI uses UCX, but the image's UCX has no module for the network. Without the network's
    module, UCX silently uses TCP. To test whether UCX has the modules for InfiniBand and RoCE, set
    ``UCX_TLS=rc,self``. If UCX lacks these modules, it reports 'no usable transports'.
    """
    row = _slow_network(case, "ucx")
    if row is None:
        return None
    evidence = _evidence(case, row, "image.ucx_transports")
    title = f"The UCX in the image has no module for {row.shown}"
    if not row.ucx:
        title = (
            f"{mpi_name(case.image.mpi)} in the image sends messages through UCX, which does not support "
            f"{row.shown} and would use TCP"
        )
    fix = row.fix if row.ucx else _another_mpi(row)
    return Hit(evidence, title=title, fix=fix, source=row.source)


@rule(
    "libfabric-lacks-provider",
    "The libfabric in the image has no provider for the host's fast network",
    severity="warning",
    fix="install in the image a libfabric that has a provider for the cluster's network",
    source="recipes/knowledge/fabric.toml, [[fabric]]; ofiwg/libfabric:man",
    facts=(*_HOST, "image.mpi", "image.mpi.components", "image.mpi.device", *_CARRIERS),
    modes=_OWN_MPI,
    advice=True,
)
def libfabric_lacks_provider(case: Case) -> Hit | None:
    """The image's MPI uses libfabric. Without a provider for the network, libfabric uses the TCP provider. To
    test whether libfabric has the provider, set ``FI_PROVIDER`` to the provider's name: without the provider,
    libfabric reports 'no provider found'. Some builds of MPICH contain libfabric inside libmpi; such an MPICH
    loads no separate libfabric.
    """
    row = _slow_network(case, "libfabric")
    if row is None:
        return None
    evidence = _evidence(case, row, "image.libfabric_providers")
    inside = _contains_libfabric(case.image_facts.mpi)
    where = "inside the image's MPICH" if inside else "in the image"
    title = f"The libfabric {where} has no provider for {row.shown} ({', '.join(row.providers)})"
    return Hit(evidence, title=title, fix=_ANOTHER_MPICH if inside else row.fix, source=row.source)


_ANOTHER_MPICH = (
    "use an MPICH that was built with an external libfabric (`--with-libfabric=DIR`) or with a provider for "
    "the host's network; do not mount the host's libfabric, because the present MPICH does not load it"
)


def _contains_libfabric(mpi: ImageMpi | None) -> bool:
    """Return whether an MPICH contains libfabric: the facts list the libraries that this MPICH needs, and
    libfabric is not in the list.
    """
    if mpi is None or mpi.implementation != "mpich" or not mpi.needs:
        return False
    return not any(plain(name).startswith("libfabric.") for name in (*mpi.needs, *(mpi.lacks or ())))


@rule(
    "verbs-driver-missing",
    "The image lacks the user-space driver of the host's RDMA device",
    severity="warning",
    fix=(
        "install rdma-core's drivers in the image (Debian: ibverbs-providers); do not mount the host's "
        "drivers"
    ),
    source="linux-rdma/rdma-core:libibverbs/dynamic_driver.c; NVIDIA/nccl:src/misc/ibvwrap.cc",
    facts=("host.infiniband", "image.verbs_providers", "image.nccl"),
    advice=True,
)
def verbs_driver_missing(case: Case) -> Hit | None:
    """UCX, libfabric and NCCL open an RDMA device through libibverbs, which loads a driver for each kind of
    device. If the driver is missing, UCX, libfabric and NCCL find no device and use TCP; NCCL prints 'NET/IB
    : No device found'. Do not mount the host's drivers, because they work only with the host's libibverbs.

    NCCL looks for libibverbs only at run time. If a GPU image has no libibverbs, NCCL silently uses TCP.
    """
    case.have("host.infiniband")
    found = fabric.fabrics_of(case.host.infiniband or (), (), case.host_facts.link_layers)
    if case.request.nodes == 1 or not found:
        return None
    image, there = case.image_facts, case.state("image.verbs_providers")
    modules = {*(image.ucx_transports or ()), *(image.libfabric_providers or ())} & _BY_VERBS
    # UCX modules and libfabric providers that need libibverbs do not load without it. If the image has no
    # libibverbs, the rule therefore concerns only NCCL.
    if image.nccl is None and (there == "absent" or not modules):
        case.ask("image.nccl")
        return None
    case.ask("image.verbs_providers")
    return _without_verbs(case, found) if there == "absent" else _without_driver(case, found)


def _without_driver(case: Case, fabrics: tuple[Fabric, ...]) -> Hit | None:
    drivers = case.image.verbs_providers or ()
    row = next((row for row in fabrics if row.verbs and row.verbs not in drivers), None)
    if row is None:
        return None
    title = f"The image lacks libibverbs' driver {row.verbs} for the host's {row.shown}"
    return Hit(case.cite("host.infiniband", "image.verbs_providers"), title=title)


def _without_verbs(case: Case, fabrics: tuple[Fabric, ...]) -> Hit | None:
    """Return a finding if NCCL needs libibverbs for a network of the host. The image has no libibverbs. NCCL
    does not need libibverbs for networks that NCCL reaches through a plugin.
    """
    row = next((row for row in fabrics if row.name not in cuda.cuda().nccl_plugin.fabrics), None)
    if row is None:
        return None
    return Hit(
        case.cite("host.infiniband", "image.nccl", "image.verbs_providers"),
        title=f"The image has no libibverbs, through which NCCL uses the host's {row.shown}",
        fix="install libibverbs and its drivers in the image (Debian: libibverbs1 and ibverbs-providers)",
        source="NVIDIA/nccl:src/misc/ibvwrap.cc; NVIDIA/nvidia-container-toolkit issue 1877",
    )


@rule(
    "fabric-devices-hidden",
    "The RDMA network cards of the node may be invisible in the container",
    severity="info",
    fix=(
        "with pyxis, add `--container-mounts=/dev/infiniband`; with podman, add `--device=/dev/infiniband`; "
        "with enroot, export MELLANOX_VISIBLE_DEVICES=all before you submit"
    ),
    source=(
        "NVIDIA/enroot:doc/standard-hooks.md (10-devices.sh, 99-mellanox.sh); pytorch/pytorch issue 111424 "
        "(pyxis: NCCL uses sockets until /dev/infiniband is mounted); podman-run(1), --device"
    ),
    facts=("host.runtime", "host.infiniband", "image.environment"),
    advice=True,
)
def fabric_devices_hidden(case: Case) -> Hit | None:
    """MPI and NCCL open RDMA network cards through files below /dev/infiniband. If the container does
    not have these files, MPI and NCCL use TCP. podman mounts into a container only the devices that podman's
    options name. enroot mounts all devices, unless the administrator sets ENROOT_RESTRICT_DEV.
    """
    case.have("host.runtime")
    if case.request.nodes == 1 or not case.host.infiniband:
        return None
    kind, said = runtime_of(case.host_facts), {*case.plan.container, *case.plan.binds}
    if any(word in one for word in ("/dev/infiniband", "--privileged", "/dev:") for one in said):
        return None
    evidence = (*case.cite("host.infiniband"), f"plan: {' '.join(case.plan.container)}")
    if kind is podman:
        title = "podman does not mount /dev/infiniband into the container, so ranks use TCP between nodes"
        return Hit(evidence, title=title, severity="warning")
    inside = {**case.image_facts.environment, **case.host_facts.environment}
    if kind not in (PYXIS, RUNTIME) or "MELLANOX_VISIBLE_DEVICES" in inside:
        return None
    title = (
        "If the administrator set ENROOT_RESTRICT_DEV, enroot hides the RDMA cards, so ranks use TCP between "
        "nodes"
    )
    return Hit(evidence, title=title)


@rule(
    "locked-memory-limited",
    "The limit on locked memory is too low for RDMA",
    severity="warning",
    fix=(
        "ask the administrators to set LimitMEMLOCK=infinity for slurmd; to see the limit in KiB, run "
        "`ulimit -l` in a job"
    ),
    source="Slurm MPI Users Guide: LimitMEMLOCK=infinity; open-mpi/ompi FAQ, locked memory",
    facts=("host.infiniband", "host.locked_memory"),
    advice=True,
)
def locked_memory_limited(case: Case) -> Hit | None:
    """RDMA (InfiniBand and RoCE) sends data from locked memory. If the limit on locked memory is too low, the
    MPI cannot register memory with the network card. The job then reports 'Cannot allocate memory', crashes,
    or falls back to TCP. The limit in an SSH session often differs from the limit in a Slurm job. A limit of
    several GiB for each process is enough.
    """
    if not case.host.infiniband:
        return None
    limit = case.host.locked_memory
    if limit is None or limit < 0 or limit >= fabric.fabric().locked_memory.small:
        return None
    title = f"A process may lock only {limit // 1024} KiB of memory; RDMA needs several GiB or no limit"
    return Hit(case.cite("host.infiniband", "host.locked_memory"), title=title)


@rule(
    "shared-memory-small",
    "Shared memory on a node (/dev/shm) is too small for training with several processes",
    severity="warning",
    fix=(
        "ask the administrators to enlarge /dev/shm on the nodes; until then, set NCCL_SHM_DISABLE=1 for "
        "NCCL, and num_workers=0 in PyTorch's DataLoader"
    ),
    source="recipes/knowledge/fabric.toml, shared_memory; NVIDIA NCCL user guide, troubleshooting",
    facts=("host.shm",),
    advice=True,
)
def shared_memory_small(case: Case) -> Hit | None:
    """NCCL, MPI and PyTorch's data loaders exchange data between the processes of a node through /dev/shm.
    Containers usually use the host's /dev/shm. If /dev/shm is full, processes fail with 'No space left on
    device' or 'Bus error'.
    """
    size = case.host.shm
    if size is None or size >= fabric.fabric().shared_memory.small:
        return None
    title = (
        f"Shared memory (/dev/shm) has {size // 2**20} MiB; NCCL and PyTorch's data loaders need 512 MiB "
        "or more"
    )
    return Hit(case.cite("host.shm"), title=title)


@rule(
    "single-copy-unavailable",
    "Ranks on one node cannot copy data directly from each other's memory",
    severity="info",
    fix=(
        "start all ranks of a node in one user namespace (with `--sharens`, or with a setuid installation of "
        "Apptainer); or ask the administrators to set kernel.yama.ptrace_scope=0"
    ),
    source="open-mpi/ompi:NEWS 4.0.2 (CMA and user namespaces); process_vm_readv(2); apptainer issue 769",
    facts=("host.runtime", "host.runtime.setuid", "host.ptrace_scope", "host.xpmem"),
    modes=_OWN_MPI,
    advice=True,
)
def single_copy_unavailable(case: Case) -> Hit | None:
    """To send a large message within a node, MPI copies directly from the sender's memory (CMA or XPMEM). The
    kernel refuses direct reads between user namespaces. If ptrace_scope of the kernel module Yama is above 0,
    the kernel also refuses direct reads (CMA) within a user namespace. Without direct reads, Open MPI copies
    each message twice, through /dev/shm.
    """
    case.have("host.runtime")
    runtime = case.host.runtime
    if runtime is None or case.request.ranks_per_node == 1:
        return None
    case.ask("host.runtime.setuid", "host.ptrace_scope")
    apart = runtime.setuid is False and "--sharens" not in case.plan.container
    apart = apart and case.mode != "mpirun-container"
    if apart:
        return Hit(case.cite("host.runtime"))
    if not case.host.ptrace_scope or case.host_facts.xpmem:
        return None
    return Hit(case.cite("host.ptrace_scope"))
