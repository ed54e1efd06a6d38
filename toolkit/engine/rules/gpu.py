"""Rules about GPUs: the host's driver and the image's CUDA. No rule in this module changes how MPI starts."""

from toolkit.engine.case import Case
from toolkit.engine.rule import Hit, rule
from toolkit.engine.traits import runtime_of
from toolkit.engine.wireup import hides, options
from toolkit.knowledge import cuda
from toolkit.knowledge.cuda import Gpu
from toolkit.knowledge.runtime import runtime
from toolkit.runtime import apptainer, podman
from toolkit.runtime.centres import PODMAN_HPC
from toolkit.runtime.enroot import PYXIS, RUNTIME, VISIBLE
from toolkit.runtime.podman import KEEP_GROUPS
from toolkit.versions import older, within

PAIR = ("image.cuda", "host.gpu_driver")
_EACH_ITS_OWN = ("--gpus-per-task", "--gpu-bind=single", "--gpu-bind=per_task", "--gpu-bind=map_gpu")
_NO_GPUS = "The container has no access to the GPUs of its node"
_OF_NVIDIA = ("nvidia", "--gpu", "libcuda", podman.HOOKS)
"""Texts in podman's options that give a container NVIDIA GPUs, such as ``--device=nvidia.com/gpu=all``."""


def names_gpus(case: Case) -> bool:
    """Return whether options or NVIDIA_VISIBLE_DEVICES (set in CUDA images) make enroot mount the driver."""
    if any(word in case.plan.container for word in (*PYXIS.GPUS, *RUNTIME.GPUS)):
        return True
    said = {**case.image_facts.environment, **case.host_facts.environment, **case.plan.env}.get(VISIBLE)
    return bool(case.image.cuda) if said is None else said not in {"", "void"}


def gpu_kinds(case: Case) -> tuple[Gpu, ...]:
    """Return the host's GPU types that toolkit's table contains, each type once."""
    found = (cuda.gpu_of(name) for name in case.host_facts.gpus or ())
    return tuple(dict.fromkeys(kind for kind in found if kind))


def too_old(case: Case) -> bool:
    """Return whether the driver is too old for the image's CUDA."""
    return older(case.host.gpu_driver, cuda.least_driver(case.image.cuda or ""))


@rule(
    "gpu-driver-too-old",
    "The host's NVIDIA driver is too old for the CUDA in the image",
    severity="error",
    fix=(
        "use an image with an older CUDA, or an image with the package cuda-compat; or ask the "
        "administrators to install a newer driver"
    ),
    source="recipes/knowledge/cuda.toml, major_driver; CUDA runtime API: cudaErrorInsufficientDriver (35)",
    facts=(*PAIR, "image.cuda_compat"),
    advice=True,
    accelerator="gpu-failure",
)
def gpu_driver_too_old(case: Case) -> Hit | None:
    """Each major release of CUDA (before CUDA 11, each minor release) needs a minimum driver release. With an
    older driver, every CUDA call fails with 'CUDA driver version is insufficient for CUDA runtime version',
    and TensorFlow trains on the CPU.

    On data-centre GPUs, the package cuda-compat in the image can make a newer driver unnecessary.
    """
    case.have(*PAIR)
    if not too_old(case) or case.image.cuda_compat:
        return None
    least = cuda.least_driver(case.image.cuda or "")
    title = (
        f"CUDA {cuda.series(case.image.cuda or '')} needs driver {least}; the host has {case.host.gpu_driver}"
    )
    return Hit(case.cite("image.cuda", "host.gpu_driver", "image.cuda_compat"), title=title)


@rule(
    "gpu-minor-compatibility",
    "The driver is older than the image's CUDA; CUDA minor-version compatibility applies",
    severity="info",
    fix=(
        "for most programs, change nothing; if PTX code or a new CUDA feature fails, use an image with "
        "an older CUDA"
    ),
    source="NVIDIA CUDA Compatibility guide, minor version compatibility",
    facts=(*PAIR,),
    advice=True,
)
def gpu_minor_compatibility(case: Case) -> Hit | None:
    """From CUDA 11 on, the driver of a CUDA release also supports later CUDA releases with the same major
    number: the driver of CUDA 12.2 supports CUDA 12.9. There are two exceptions: PTX code of a newer CUDA
    (error 222, CUDA_ERROR_UNSUPPORTED_PTX_VERSION), and features that need a newer driver (error 36).
    """
    case.have(*PAIR)
    if too_old(case) or not older(case.host.gpu_driver, cuda.full_driver(case.image.cuda or "")):
        return None
    pair = f"Driver {case.host.gpu_driver} is older than CUDA {cuda.series(case.image.cuda or '')}"
    return Hit(case.cite(*PAIR), title=f"{pair}; CUDA minor-version compatibility applies")


@rule(
    "gpu-newer-than-cuda",
    "The CUDA in the image was released before this kind of GPU",
    severity="warning",
    fix=(
        "use an image with a newer CUDA; or set CUDA_CACHE_PATH to a folder that you keep between jobs, so "
        "that the driver compiles the PTX code only once"
    ),
    source="recipes/knowledge/cuda.toml, [[gpu]]; NVIDIA architecture compatibility guides",
    facts=("image.cuda", "host.gpus"),
    advice=True,
)
def gpu_newer_than_cuda(case: Case) -> Hit | None:
    """CUDA's libraries have no machine code for GPUs that are newer than the CUDA release. At the first
    start, the driver compiles the PTX code in the libraries, which takes minutes. Libraries without PTX fail
    with 'no kernel image is available'.
    """
    case.have("image.cuda", "host.gpus")
    for kind in gpu_kinds(case):
        if older(case.image.cuda, kind.first):
            title = f"{kind.family} GPUs need CUDA {kind.first} or later; the image has {case.image.cuda}"
            return Hit(case.cite("image.cuda", "host.gpus"), title=title, source=kind.source)
    return None


@rule(
    "gpu-dropped-by-cuda",
    "The CUDA in the image no longer supports this kind of GPU",
    severity="error",
    fix="use an image with an older CUDA",
    source="recipes/knowledge/cuda.toml, [[gpu]]; CUDA Toolkit release notes 12.0 and 13.0",
    facts=("image.cuda", "host.gpus"),
    advice=True,
    accelerator="gpu-failure",
)
def gpu_dropped_by_cuda(case: Case) -> Hit | None:
    """CUDA 12 ended support for Kepler GPUs, and CUDA 13 for Maxwell, Pascal and Volta GPUs. CUDA's libraries
    have no code for unsupported GPUs, so they fail with 'no kernel image is available for execution'.
    """
    case.have("image.cuda", "host.gpus")
    for kind in gpu_kinds(case):
        # ``kind.last`` is a series such as 12.9, which includes 12.9.1.
        if older(kind.last, cuda.series(case.image.cuda or "")):
            title = (
                f"CUDA {kind.last} is the last release for {kind.family} GPUs; the image has "
                f"{case.image.cuda}"
            )
            return Hit(case.cite("image.cuda", "host.gpus"), title=title, source=kind.source)
    return None


@rule(
    "gpu-parts-apart",
    "MIG divides the GPUs, and ranks cannot copy directly between MIG instances",
    severity="info",
    fix="if the ranks communicate little, change nothing; otherwise, request whole GPUs",
    source="NVIDIA MIG user guide, deployment considerations; RAPIDS guide, MIG; NVIDIA/nccl issue 1716",
    facts=("host.mig", "image.cuda"),
    advice=True,
)
def gpu_parts_apart(case: Case) -> Hit | None:
    """Each MIG instance is a separate device: CUDA IPC, peer-to-peer and NVLink do not work between
    instances. Between MIG instances, MPI and NCCL copy through host memory. NCCL up to 2.31 fails with
    'Duplicate GPU detected' if two ranks use instances of one GPU.
    """
    case.have("host.mig", "image.cuda")
    if not case.host.mig or case.request.ranks_per_node == 1:
        return None
    return Hit(case.cite("host.mig", "image.cuda"))


@rule(
    "gpu-without-driver",
    "The image is built for NVIDIA GPUs; this host has no NVIDIA driver",
    severity="info",
    fix="if the job needs no GPU, change nothing; for jobs with GPUs, run `toolkit probe` on a compute node",
    source="TensorFlow install guide, pip; TensorFlow's wheels open CUDA's libraries when they need them",
    facts=("image.cuda", "host.gpu_driver", "host.amd_gpus"),
    advice=True,
)
def gpu_without_driver(case: Case) -> Hit | None:
    """Without a GPU, CUDA programs compute on the CPU. Login nodes often have no GPU and no driver."""
    case.have("image.cuda")
    if case.host.gpu_driver or case.host_facts.amd_gpus:
        return None
    return Hit(case.cite("image.cuda", "host.gpu_driver"))


@rule(
    "gpu-driver-mismatch",
    "The NVIDIA kernel module and the libraries of the driver have different releases",
    severity="error",
    fix=(
        "use other nodes; or ask the administrators to restart this node, or to load the kernel module "
        "of the driver's new release"
    ),
    source="NVML: NVML_ERROR_LIB_RM_VERSION_MISMATCH (18); CUDA runtime: cudaErrorSystemDriverMismatch (803)",
    facts=(*PAIR,),
    advice=True,
    accelerator="gpu-failure",
)
def gpu_driver_mismatch(case: Case) -> Hit | None:
    """After a driver update without a restart, the old kernel module still runs, and --nv mounts the new
    libraries. If the releases differ, programs find no GPU: TensorFlow computes on the CPU, and other
    frameworks fail.
    """
    case.have(*PAIR)
    return Hit(case.cite("host.gpu_mismatch", "host.gpu_driver")) if case.host_facts.gpu_mismatch else None


@rule(
    "gpu-of-amd",
    "The image is built for NVIDIA GPUs; this host has AMD GPUs",
    severity="warning",
    fix="use an image that was built for ROCm, and start it with `--rocm`",
    source="Apptainer user guide, GPU support (--rocm); TensorFlow and PyTorch install guides: CUDA or ROCm",
    facts=("image.cuda", "host.gpu_driver", "host.amd_gpus"),
    advice=True,
)
def gpu_of_amd(case: Case) -> Hit | None:
    """On AMD GPUs, CUDA programs silently compute on the CPU. toolkit has few rules about ROCm images."""
    case.have("image.cuda")
    if case.host_facts.gpu_driver:
        return None
    if not case.host_facts.amd_gpus:
        case.ask("host.amd_gpus", failed_only=True)
        return None
    case.ask("host.gpu_driver")
    number = len(case.host_facts.amd_gpus)
    title = f"The image is built for NVIDIA GPUs; this host has {number} AMD GPUs"
    return Hit(case.cite("image.cuda", "host.amd_gpus"), title=title)


@rule(
    "gpus-not-handed-in",
    _NO_GPUS,
    severity="error",
    fix="start the container with `--nv` for NVIDIA GPUs, or with `--rocm` for AMD GPUs",
    source=(
        "Apptainer user guide, GPU support; ROCm/legacy-rocm-build issue 1798 (--containall); "
        "NVIDIA/enroot:doc/standard-hooks.md, 98-nvidia.sh; NVIDIA/enroot issue 205; podman-run(1), --device "
        "and --group-add=keep-groups"
    ),
    facts=(
        "host.runtime",
        "host.runtime.settings",
        "host.gpus",
        "host.amd_gpus",
        "image.environment",
        "image.cuda",
    ),
    advice=True,
    accelerator="gpu-failure",
)
def gpus_not_handed_in(case: Case) -> Hit | None:
    """--nv mounts the devices and libraries of the NVIDIA driver. An image for AMD GPUs contains ROCm's
    libraries and needs only the host's device files, which --contain hides. enroot mounts the NVIDIA driver
    if NVIDIA_VISIBLE_DEVICES requests GPUs; images with CUDA usually set this variable. podman mounts the
    devices that --device names. Only members of a certain Unix group may open the AMD device /dev/kfd. In
    podman's user namespace, a process keeps this group only with ``--group-add=keep-groups``.
    """
    host, kind = case.host_facts, runtime_of(case.host_facts)
    if not case.request.gpus or host.runtime is None or not (host.gpus or host.amd_gpus):
        return None
    if kind is RUNTIME or kind is PYXIS:
        return _not_visible(case) if host.gpus else None
    if kind is podman or kind is PODMAN_HPC:
        return _no_device(case)
    if kind is not apptainer:
        return None
    asked, always = (kind.GPUS, "always use nv") if host.gpus else (kind.AMD_GPUS, "always use rocm")
    mounted = " ".join((*case.plan.binds, *case.plan.container))
    if options(case, {*asked, "--nvccli"}) or host.runtime.settings.get(always) == "yes":
        return _left_out(case)
    why = f"the container is started without {asked[0]}"
    if host.gpus and "libcuda" not in mounted:
        return Hit(case.cite("host.gpus", "host.runtime"), title=f"{_NO_GPUS}: {why}")
    hidden = hides(case, "shm")
    if host.gpus or not hidden or "/dev/kfd" in mounted:
        return None
    title = f"{_NO_GPUS}: {why}, and {', '.join(hidden)} hides /dev/kfd"
    return Hit((*case.cite("host.amd_gpus", "host.runtime"), *hidden.values()), title=title)


def _left_out(case: Case) -> Hit | None:
    """Return a finding if an option such as --contain makes an old container runtime hide /dev/nvidia*."""
    found, hidden = case.host_facts.runtime, hides(case, "shm")
    if found is None or not hidden or not case.host_facts.gpus:
        return None
    option, evidence = next(iter(hidden)), (*case.cite("host.runtime"), *hidden.values())
    title = f"{_NO_GPUS}: with {option}, {found.name} {found.version} does not mount /dev/nvidia*"
    fix = f"leave out `{option}`; or ask the administrators to install a later release of {found.name}"
    rows = (r for r in runtime().hidden_gpus if r.name == found.name and within(found.version, r.versions))
    return next((Hit(evidence, title=title, fix=fix, source=row.source) for row in rows), None)


def _no_device(case: Case) -> Hit | None:
    """Return the finding that podman gives the container no GPU, or a GPU that the user may not open."""
    said = " ".join((*case.plan.container, *case.plan.binds))
    nvidia, evidence = bool(case.host_facts.gpus), f"plan: {' '.join(case.plan.container)}"
    fact = "host.gpus" if nvidia else "host.amd_gpus"
    if not any(word in said for word in (_OF_NVIDIA if nvidia else ("/dev/kfd",))):
        asked = (podman.GPUS if nvidia else podman.AMD_GPUS)[0]
        fix = f"add `{' '.join(podman.GPUS if nvidia else podman.AMD_GPUS)}`"
        title = f"{_NO_GPUS}: the container is started without {asked}"
        return Hit((*case.cite(fact), evidence), title=title, fix=fix)
    if nvidia or KEEP_GROUPS in said:
        return None
    title = "Processes in the container lose the Unix group that may open /dev/kfd"
    return Hit((*case.cite(fact), evidence), title=title, fix=f"add `{KEEP_GROUPS}`, which requires crun")


def _not_visible(case: Case) -> Hit | None:
    """Return the finding that NVIDIA_VISIBLE_DEVICES is not set, so enroot's hook mounts no driver."""
    inside = case.image_facts.environment
    if not inside or f"environment.{VISIBLE}" in case.image_facts.unknown or names_gpus(case):
        return None
    title = f"{_NO_GPUS}: neither the image nor the job sets {VISIBLE}"
    evidence = (*case.cite("host.gpus"), f"image: environment: no {VISIBLE}")
    return Hit(
        evidence,
        title=title,
        fix=f"before you submit: export {VISIBLE}=all; or set {VISIBLE}=all in the image",
    )


@rule(
    "gpu-libraries-missed",
    "The host's container runtime may not find the libraries of the NVIDIA driver",
    severity="warning",
    fix=(
        "mount the driver's libraries, for example with `--bind /usr/lib64/libcuda.so.1`; or ask the "
        "administrators to install a later release of the runtime"
    ),
    source="recipes/knowledge/runtime.toml, [[missed_driver]]",
    facts=("host.runtime", "host.runtime.version", "host.gpus"),
    advice=True,
)
def gpu_libraries_missed(case: Case) -> Hit | None:
    """``--nv`` looks for the driver's libraries in the host's loader cache. Some releases of the runtime do
    not find these libraries on some hosts. Without these libraries, programs built for CUDA fail:
    'libcuda.so.1: cannot open shared object file'.
    """
    case.have("host.runtime", "host.gpus")
    found = case.host_facts.runtime
    if found is None or not options(case, set(apptainer.GPUS)):
        return None
    release = found.version or ""
    rows = (r for r in runtime().missed_driver if r.name == found.name and within(release, r.versions))
    row = next(rows, None)
    return Hit(case.cite("host.runtime"), title=row.because, source=row.source) if row else None


@rule(
    "ranks-more-than-gpus",
    "A node has fewer GPUs than ranks; each rank of PyTorch or JAX needs a GPU",
    severity="error",
    fix="start one rank for each GPU of a node: set `--ranks-per-node` to the number of GPUs",
    source="NVIDIA/nccl:src/init.cc, 'Duplicate GPU detected'; CUDA runtime: cudaErrorInvalidDevice (101)",
    facts=("host.gpus",),
    advice=True,
    programs=("torch", "jax"),
    accelerator="gpu-failure",
)
def ranks_more_than_gpus(case: Case) -> Hit | None:
    """Each rank uses the GPU whose number is the rank's local number (LOCAL_RANK). If no GPU has this number,
    CUDA reports 'invalid device ordinal'. If two ranks share a GPU, NCCL fails with 'Duplicate GPU detected'.
    """
    if not case.request.gpus or case.plan.starter:
        return None
    case.have("host.gpus")
    there, ranks = len(case.host.gpus or ()), case.request.ranks_per_node
    if not 0 < there < ranks:
        return None
    gpus = "GPU" if there == 1 else "GPUs"
    return Hit(case.cite("host.gpus"), title=f"{ranks} ranks on a node share {there} {gpus}")


@rule(
    "gpus-numbered-per-rank",
    "Slurm shows each rank one GPU, which then has number 0 in every rank",
    severity="warning",
    fix=(
        "leave out `--gpus-per-task` and `--gpu-bind`; or let each rank use GPU 0 in the script (PyTorch: "
        "cuda:0; JAX: local_device_ids=[0])"
    ),
    source=(
        "srun(1), --gpus-per-task and --gpu-bind; PyTorch documentation, torch.cuda.set_device; "
        "jax-ml/jax issues 23452 and 28194 ('invalid device ordinal')"
    ),
    facts=(),
    advice=True,
    programs=("torch", "jax"),
    accelerator="gpu-failure",
)
def gpus_numbered_per_rank(case: Case) -> Hit | None:
    """With --gpus-per-task, Slurm sets CUDA_VISIBLE_DEVICES of each rank to one GPU. CUDA gives this GPU the
    number 0. A script that uses ``cuda:LOCAL_RANK`` fails on every rank except the first. Without arguments,
    ``jax.distributed.initialize()`` also selects the GPU by the rank's local number, and fails.
    """
    found = [word for word in case.plan.launcher if word.startswith(_EACH_ITS_OWN)]
    if not found or case.request.ranks_per_node == 1:
        return None
    own = case.plan.program == "jax" and "local_device_ids" not in case.request.says
    return Hit((f"plan: {found[0]}",), severity="error" if own else None)
