"""Rules about shared memory, locked memory, and the PID and user namespaces of ranks."""

from toolkit import knowledge
from toolkit.engine import fast_network
from toolkit.engine.case import Case
from toolkit.engine.guarded import Undecided
from toolkit.engine.rule import MPI_MODES, TRY_IT, Hit, rule
from toolkit.engine.settings_in_force import setting_value
from toolkit.engine.traits import (
    HYDRA,
    built_for_gpus,
    computes_on_gpus,
    copies_across_namespaces,
    sends_by_ucx,
)
from toolkit.engine.wireup import alone_in_namespace, binds_devices, hides, own_shared_memory
from toolkit.engine.words import mpi_name
from toolkit.knowledge.fabric import fabric
from toolkit.knowledge.mpi import Namespaces, Sharing
from toolkit.model.mpifacts import ImageMpi
from toolkit.versions import within

_SPARED = 41 / 55
"""Fraction of test launches without a crash: 41 of 55 launches with two ranks in separate PID namespaces."""
_BY_MEMORY = {"sm", "shm", "mm", "posix", "sysv", "cma"}
"""UCX transports that copy messages through the memory of a node (openucx/ucx:docs/source/faq.md)."""
_LOADERS = 64 << 20
"""Size in bytes. A smaller /dev/shm may be too small for the batches of PyTorch's data loaders."""
_LARGER = (
    "enlarge /dev/shm (`docker run --shm-size`, `mount -o remount,size=…`), or configure the MPI to use a "
    "transport without shared memory, such as TCP"
)


def _shares_by(case: Case, mpi: ImageMpi, row: Sharing) -> bool | None:
    """Return whether a row of ``mpi.toml`` applies to this MPI library. Return ``None`` if the answer depends
    on an unknown fact.
    """
    if not row.of(mpi):
        return False
    if row.device and mpi.device is not None and not mpi.device.startswith(row.device):
        return False
    own = _own_shm(mpi)
    if row.own_shm is not None and own is not None and row.own_shm != own:
        return False
    if row.ucx and case.image_facts.ucx is not None and not within(case.image_facts.ucx, row.ucx):
        return False
    unread = (
        (bool(row.device) and mpi.device is None)
        or (row.own_shm is not None and own is None)
        or (bool(row.ucx) and case.image_facts.ucx is None)
    )
    return None if unread else True


def _own_shm(mpi: ImageMpi) -> bool | None:
    """Return whether MPICH itself sends messages through shared memory; ``None`` if unknown. By default, an
    MPICH that was built only for UCX lets UCX send these messages
    (pmodels/mpich:src/mpid/ch4/subconfigure.m4, ch4_shm).
    """
    if mpi.own_shm is not None or mpi.device is None:
        return mpi.own_shm
    if mpi.device == "ch4:ucx":
        return False
    return None if "ucx" in mpi.device else True


def _lacking(mpi: ImageMpi, case: Case) -> Undecided:
    names = {
        "image.mpi.device": mpi.device,
        "image.mpi.own_shm": _own_shm(mpi),
        "image.ucx": case.image_facts.ucx,
    }
    return Undecided(*(name for name, value in names.items() if value is None))


@rule(
    "namespaces-split-a-node",
    "Ranks of one node are in different user namespaces",
    severity="error",
    fix="start the container with `--sharens` (Apptainer 1.3 or later), or use a setuid installation of the "
    "runtime",
    source="apptainer/apptainer issue 769; tests/matrix: cells srun-pmi2-N1n2 with and without --sharens",
    facts=(
        *("image.mpi.version", "host.runtime", "host.runtime.setuid", "host.ptrace_scope", "host.infiniband"),
        *(
            "image.mpi.device",
            "image.mpi.own_shm",
            "image.mpi.components",
            "image.ucx",
            "image.ucx_transports",
        ),
    ),
    modes=("srun-pmix", "srun-pmi2", "mpirun-host", "bind"),
)
def namespaces_split_a_node(case: Case) -> Hit | None:
    """Without setuid, each start of a container creates a separate user namespace. Between user namespaces,
    the kernel refuses to share memory through /proc and to copy from another process's memory (cross-memory
    attach). Some builds of MPI detect the refusal too late, and fail.
    """
    case.ask("image.mpi.version", "host.runtime")
    mpi, split = case.image_facts.mpi, alone_in_namespace(case)
    if mpi is None or split is False:
        return None
    rows = [row for row in knowledge.mpi().namespaces if _still_applies(row, case)]
    for row in rows:
        fits = _shares_by(case, mpi, row)
        used = _by_ucx(case, mpi) if row.by and fits is not False else True
        if fits is False or used is False:
            continue
        if split is None:
            raise Undecided("host.runtime.setuid")
        if fits is None:
            raise _lacking(mpi, case)
        several = case.request.nodes > 1 and row.several_nodes
        evidence, outcome = case.cite("host.runtime", "image.mpi"), several or row.outcome
        chance = row.by_chance if several else row.by_chance_on_one
        return Hit(evidence, outcome, row.because, source=row.source, by_chance=chance)
    return None


def _by_ucx(case: Case, mpi: ImageMpi) -> bool:
    """Return whether Open MPI, with the settings of this launch, sends messages within a node through UCX and
    shared memory.
    """
    pml = setting_value(case, "OMPI_MCA_pml") or ""
    named = "ucx" in pml.removeprefix("^").split(",")
    tls = setting_value(case, "UCX_TLS") or ""
    near = set(tls.split(",")) & {"all", *_BY_MEMORY}
    if not mpi.components:
        raise Undecided("image.mpi.components")
    if not sends_by_ucx(mpi) or (pml and named == pml.startswith("^")):
        return False
    if tls and not near and not tls.startswith("^"):
        return False
    if named and pml == "ucx":
        return True
    return fast_network.judge_ucx(case, tls, setting_value(case, "UCX_NET_DEVICES") or "") == "open"


def _still_applies(row: Namespaces, case: Case) -> bool:
    """Return whether the fault that a row of ``mpi.toml`` describes can occur on this host in this launch."""
    if row.ptrace and case.host_facts.ptrace_scope not in {None, 0}:
        return False  # with ptrace_scope above 0, MPICH does not try cross-memory attach
    name, _, value = row.lifted_by.partition("=")
    return not (row.lifted_by and case.plan.env.get(name) == value)


@rule(
    "large-messages-hang",
    "Messages of 3 MiB or more between ranks on one node never arrive",
    severity="error",
    fix="start containers with `--sharens` (Apptainer 1.3 or later), or set "
    "OMPI_MCA_btl_vader_single_copy_mechanism=none",
    source=(
        "measured between user namespaces: Open MPI 4.1.4 and 4.1.8 deliver messages of 2 MiB, and hang with "
        "messages of 3 MiB or more, but work with --sharens or single_copy_mechanism=none; Open MPI 5.0.10 "
        "and 5.0.11 work"
    ),
    facts=("image.mpi.version", "host.runtime", "host.runtime.setuid"),
    modes=("srun-pmix", "mpirun-host", "bind"),
    advice=True,
)
def large_messages_hang(case: Case) -> Hit | None:
    """Ranks start and exchange small messages, so a start-up test succeeds. The program hangs later, when
    ranks exchange the first large gradient. toolkit predicts only how ranks start, so this rule does not
    change the predicted outcome.
    """
    case.ask("image.mpi.version", "host.runtime")
    mpi, split = case.image.mpi, alone_in_namespace(case)
    if mpi is None or split is False or not copies_across_namespaces(mpi):
        return None
    if case.plan.env.get("OMPI_MCA_btl_vader_single_copy_mechanism") in {"none", "emulated"}:
        return None
    if split is None:
        raise Undecided("host.runtime.setuid")
    return Hit(case.cite("host.runtime", "image.mpi"))


@rule(
    "ranks-in-namespaces-of-their-own",
    "Ranks of one node have separate PID namespaces, so two ranks may have the same process ID",
    severity="error",
    fix="leave out `--pid` and unset APPTAINER_PID; or add `--sharens` (Apptainer 1.3 or later)",
    source=(
        "open-mpi/ompi:opal/mca/shmem, segment_attach; measured: 55 launches of Open MPI 4.1.4, 4.1.8, 5.0.7 "
        "and 6.0.0rc2 in containers with --pid; in 14 launches, both ranks had the same process ID, and only "
        "these 14 launches crashed"
    ),
    facts=("host.environment", "image.mpi"),
    modes=("srun-pmix", "srun-pmi2", "mpirun-host", "bind"),
)
def ranks_in_namespaces_of_their_own(case: Case) -> Hit | None:
    """Open MPI compares process IDs to decide whether a rank itself created a shared-memory segment. If
    rank A created the segment, and rank B has the same process ID as rank A, then rank B uses an address that
    is valid only in rank A. If each rank has its own PID namespace, two ranks can have the same process ID,
    and then crash with a segmentation fault.

    About one in four test launches with two ranks crashed, so for two ranks toolkit only warns. The chance of
    a crash grows with the number of ranks. If this chance is over one half, as with three ranks on a node,
    toolkit predicts a crash. Intel MPI did not crash in 24 launches, 6 of them with equal process IDs. MPICH
    did not crash in any launch. The option ``--ipc`` without ``--pid`` is harmless.
    """
    case.ask("host.environment", "image.mpi")
    mpi, found = case.image.mpi, hides(case, "processes")
    if not found or case.request.ranks_per_node == 1 or mpi is None or mpi.implementation != "openmpi":
        return None
    if "--sharens" in case.plan.container:
        return None
    title = (
        f"With {', '.join(found)}, two ranks can get the same process ID and crash (14 of 55 test launches)"
    )
    evidence, ranks = tuple(dict.fromkeys(found.values())), case.request.ranks_per_node
    if _SPARED ** (case.request.nodes * ranks * (ranks - 1) // 2) > 1 / 2:
        return Hit(evidence, title=title, severity="warning", by_chance=("crash",))
    return Hit(evidence, "crash", title, title, by_chance=("ok",))


@rule(
    "mpi-shared-memory-small",
    "Shared memory on the host (/dev/shm) is too small for the MPI in the image",
    severity="error",
    fix=_LARGER,
    source="recipes/knowledge/mpi.toml, [[shared_memory]]; tests/matrix: set shm",
    facts=("image.mpi", "host.shm", "image.mpi.device", "image.mpi.own_shm", "image.ucx"),
    modes=MPI_MODES,
)
def mpi_shared_memory_small(case: Case) -> Hit | None:
    """MPICH keeps the message queues between ranks of one node in /dev/shm, and uses more of this memory over
    time. If /dev/shm is full, the kernel kills the rank. The rule does not apply to Open MPI.
    """
    case.ask("image.mpi")
    mpi, there = case.image_facts.mpi, case.host_facts.shm
    if mpi is None or case.request.ranks_per_node == 1:
        return None
    if own_shared_memory(case):
        return None  # the container has its own /dev/shm, so the size of the host's /dev/shm does not matter
    for row in knowledge.mpi().shared_memory:
        fits = _shares_by(case, mpi, row)
        if fits is not False:
            case.ask("host.shm", failed_only=True)
        share = case.request.ranks_per_node / 2
        # If the probe did not read the size of /dev/shm, assume that /dev/shm is large enough.
        if fits is False or there is None or there >= row.enough * share:
            continue
        if fits is None:
            raise _lacking(mpi, case)
        evidence = (*case.cite("image.mpi"), f"host: /dev/shm has {there} bytes")
        if there > row.least * share:
            because = (
                f"toolkit does not know whether {there} bytes of /dev/shm are enough for {mpi_name(mpi)}"
            )
            return Hit(evidence, "unknown", because, fix=f"{TRY_IT}; or {_LARGER}")
        because = f"{mpi_name(mpi)} needs more than {there} bytes of /dev/shm"
        return Hit(evidence, row.outcome, because, source=row.source)
    return None


@rule(
    "shared-memory-apart",
    "Each rank of a node has its own /dev/shm, but the MPI in the image needs a /dev/shm that all ranks "
    "share",
    severity="error",
    fix="give the containers the host's /dev/shm: `--bind /dev`; or start the containers with `--sharens` "
    "(Apptainer 1.3 or later)",
    source=(
        "recipes/knowledge/mpi.toml, [[apart]]; apptainer/apptainer:internal/pkg/runtime/engine/apptainer/"
        "container_linux.go, addDevMount"
    ),
    facts=("image.mpi", "host.runtime", "image.mpi.device"),
    modes=("srun-pmix", "srun-pmi2", "mpirun-host", "bind"),
)
def shared_memory_apart(case: Case) -> Hit | None:
    """In MPICH, the first rank of a node creates a file in /dev/shm and sends the file's name to the other
    ranks. With --contain or 'mount dev = minimal', each container has its own tmpfs at /dev/shm, so the other
    ranks do not find the file. The outcome depends on the MPICH release. toolkit does not know the outcome
    for Intel MPI and MVAPICH2. The rule does not apply to Open MPI, which then exchanges messages without
    /dev/shm.
    """
    case.ask("image.mpi", "host.runtime")
    mpi, apart = case.image_facts.mpi, own_shared_memory(case)
    if mpi is None or case.request.ranks_per_node == 1 or "--sharens" in case.plan.container:
        return None
    if mpi.implementation not in HYDRA or "sock" in (mpi.device or ""):
        return None
    if not apart:
        if not binds_devices(case):
            case.ask("host.runtime.settings", failed_only=True)
        return None
    evidence = (apart, *case.cite("image.mpi"))
    row = next((row for row in knowledge.mpi().apart if row.of(mpi)), None)
    if row is None:
        because = f"toolkit's developers have not tested {mpi_name(mpi)} with a separate /dev/shm per rank"
        return Hit(evidence, "unknown", because)
    case.ask("image.mpi.device")
    return Hit(evidence, row.outcome, row.because, source=row.source)


@rule(
    "loader-shared-memory-small",
    "PyTorch's data loaders may not have enough shared memory",
    severity="warning",
    fix="mount the host's /dev/shm and enlarge it, or set num_workers=0 in the DataLoader",
    source="PyTorch README, Docker image: shared memory and --shm-size; tests/matrix/peers: loader.py",
    facts=("host.shm",),
    programs=("torch",),
)
def loader_shared_memory_small(case: Case) -> Hit | None:
    """The workers of a DataLoader pass each batch through /dev/shm. If /dev/shm is full, a worker crashes
    with 'Bus error'. By default, a container's separate /dev/shm has a size of 64 MB.
    """
    if case.request.says.get("loader_num_workers", "0") == "0":
        return None
    if own := own_shared_memory(case):
        return Hit((f"{own} gives the container a separate /dev/shm",), by_chance=("crash", "comm-failure"))
    case.ask("host.shm")
    if case.host.shm is None or case.host.shm >= _LOADERS:
        return None
    return Hit(case.cite("host.shm"), by_chance=("crash", "comm-failure"))


@rule(
    "nccl-shared-memory-small",
    "NCCL may not have enough shared memory (/dev/shm) for ranks in one container",
    severity="warning",
    fix="give the container the host's /dev/shm (`--ipc=host`), or a larger /dev/shm (`--shm-size=1g`)",
    source="NVIDIA NCCL user guide, troubleshooting, shared memory; NVIDIA/nccl issue 290 (4 GPUs, 64 MB)",
    facts=("host.gpu_driver", "host.gpus", "image.nccl"),
    programs=("horovod", "torch", "jax"),
)
def nccl_shared_memory_small(case: Case) -> Hit | None:
    """Between GPUs without a direct connection, NCCL exchanges data through /dev/shm, and aborts if /dev/shm
    is full. By default, a container's separate /dev/shm has a size of 64 MB. NCCL does not use /dev/shm
    between ranks in separate containers.
    """
    own = own_shared_memory(case)
    together = case.plan.mode == "mpirun-container" or bool(case.plan.starter)
    if not own or not together or case.request.ranks_per_node == 1:
        return None
    if any(word.startswith("--shm-size") for word in case.plan.container):
        return None
    if not case.image.nccl or not case.host.gpus or case.plan.env.get("NCCL_SHM_DISABLE") == "1":
        return None
    evidence = (f"{own} gives the container a separate /dev/shm", *case.cite("host.gpus", "image.nccl"))
    return Hit(evidence, by_chance=("init-failure", "crash"))


@rule(
    "rdma-memory-refused",
    "The limit on locked memory is too low for NCCL over RDMA",
    severity="error",
    fix=(
        "ask the administrators to set LimitMEMLOCK=infinity for slurmd; until then, set "
        "NCCL_IB_DISABLE=1 and NCCL_NET=Socket, which select TCP"
    ),
    source=(
        "NVIDIA/nccl-tests issue 206 ('ibv_reg_mr_iova2 failed with error Cannot allocate memory', 8 MiB); "
        "awslabs/awsome-distributed-ai issue 647 (EFA: 'Failure to post internal receive buffers', 64 MiB); "
        "NVIDIA NCCL user guide, troubleshooting, InfiniBand"
    ),
    facts=(
        "host.infiniband",
        "host.fabrics",
        "host.locked_memory",
        "host.gpu_driver",
        "host.gpus",
        "image.nccl_ofi",
    ),
    programs=("torch",),
)
def rdma_memory_refused(case: Case) -> Hit | None:
    """InfiniBand, RoCE and EFA adapters access only memory that the process has locked. NCCL locks its
    buffers when it connects to other ranks, and aborts if the limit on locked memory is too low. NCCL does
    not fall back to TCP.
    """
    limit, host = case.host_facts.locked_memory, case.host_facts
    if case.request.nodes == 1 or not built_for_gpus(case.image_facts):
        return None
    if limit is not None and not 0 <= limit <= fabric().locked_memory.refused:
        return None
    if limit is None and not case.has_failed("host.locked_memory"):
        return None
    case.ask("host.infiniband", "host.gpu_driver", "host.gpus", failed_only=True)
    if not host.infiniband or not computes_on_gpus(host, case.image_facts):
        return None
    if limit is None:
        raise Undecided("host.locked_memory")
    if "efa" in (host.fabrics or ()):
        case.ask("image.nccl_ofi", failed_only=True)
        if not case.image_facts.nccl_ofi:
            return None  # without the plugin for EFA, NCCL uses TCP
    if host.compute_nodes is None and "locked_memory" in host.evidence:
        raise Undecided("host.locked_memory")  # the limit on the login node may differ from a job's limit
    said = {**host.environment, **case.image_facts.environment, **case.plan.env}
    if said.get("NCCL_IB_DISABLE") == "1" or said.get("NCCL_NET") == "Socket":
        return None
    because = f"a process may lock only {limit // 1024} KiB of memory; NCCL needs more for RDMA"
    return Hit(case.cite("host.locked_memory", "host.infiniband"), "comm-failure", because)
