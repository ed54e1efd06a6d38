"""Rules about GPUs: the driver of the host against the CUDA of the image. None changes how MPI starts."""

import posixpath

from toolkit.engine.asked import missing
from toolkit.engine.case import Case
from toolkit.engine.rule import Hit, Lacks, rule
from toolkit.knowledge import cuda
from toolkit.knowledge.cuda import Gpu
from toolkit.versions import older

_PAIR = ("image.cuda", "host.gpu_driver")
_COMPAT = ("/usr/local/cuda/compat",)
"""Where the forward-compatibility libraries lie, unless the image tells (CUDA Compatibility guide)."""
_DRIVER = "/.singularity.d/libs"
"""Where ``--nv`` puts the host's driver; the runtime names it last in LD_LIBRARY_PATH."""


def kinds(case: Case) -> tuple[Gpu, ...]:
    """Return the kinds of GPU of the host that are known here, each once."""
    found = (cuda.gpu_of(name) for name in case.host.gpus or ())
    return tuple(dict.fromkeys(kind for kind in found if kind))


def _too_old(case: Case) -> bool:
    """Tell whether the driver itself cannot run the image's CUDA."""
    return older(case.host.gpu_driver, cuda.least_driver(case.image.cuda or ""))


@rule(
    "gpu-driver-too-old",
    "The host's NVIDIA driver is too old for the CUDA in the image",
    severity="error",
    fix="use an image with an older CUDA, or one with the package cuda-compat; administrator: a newer driver",
    source="recipes/knowledge/cuda.toml, major_driver; CUDA runtime API: cudaErrorInsufficientDriver (35)",
    about=_PAIR,
    then=("image.cuda_compat",),
    advice=True,
)
def gpu_driver_too_old(case: Case) -> Hit | Lacks | None:
    """Each major release of CUDA needs a driver of its own family or a newer one; before CUDA 11 each minor
    release does. With an older one every CUDA call ends with 'CUDA driver version is insufficient for CUDA
    runtime version', and TensorFlow trains on the CPU.

    The package cuda-compat in the image can bridge it on data-centre GPUs; other rules judge that.
    """
    if not _too_old(case):
        return None
    if lacks := missing(case, "image.cuda_compat"):
        return lacks
    if case.image.cuda_compat:
        return None
    least = cuda.least_driver(case.image.cuda or "")
    title = (
        f"CUDA {cuda.series(case.image.cuda or '')} needs driver {least}, the host has {case.host.gpu_driver}"
    )
    return Hit(case.cite("image.cuda", "host.gpu_driver", "image.cuda_compat"), title=title)


@rule(
    "gpu-minor-compatibility",
    "The driver is older than the image's CUDA, and carries it by minor-version compatibility",
    severity="info",
    fix="nothing for most programs; where PTX or a new feature fails, an image with an older CUDA",
    source="NVIDIA CUDA Compatibility guide, minor version compatibility",
    about=_PAIR,
    advice=True,
)
def gpu_minor_compatibility(case: Case) -> Hit | None:
    """From CUDA 11 on a driver runs every release of its major family. Two things do not work then: machine
    code that the driver has to compile at start (PTX) from the newer toolkit (error 222,
    CUDA_ERROR_UNSUPPORTED_PTX_VERSION), and features that need the newer driver (error 36).
    """
    if _too_old(case) or not older(case.host.gpu_driver, cuda.full_driver(case.image.cuda or "")):
        return None
    return Hit(case.cite(*_PAIR))


@rule(
    "cuda-compat-refused",
    "The forward-compatibility libraries in the image do not work on this host",
    severity="error",
    fix="use an image with an older CUDA; administrator: a newer driver",
    source="NVIDIA CUDA Compatibility guide, forward compatibility; recipes/knowledge/cuda.toml, [[compat]]",
    about=(*_PAIR, "image.cuda_compat"),
    then=("host.gpus",),
    advice=True,
)
def cuda_compat_refused(case: Case) -> Hit | Lacks | None:
    """cuda-compat is made for data-centre GPUs, and for some branches of the driver. Elsewhere cuInit answers
    804 (forward compatibility was attempted on non supported HW) or 803 (system has unsupported display
    driver / CUDA driver combination).
    """
    if not _too_old(case):
        return None
    if lacks := missing(case, "host.gpus"):
        return lacks
    why = _refusal(case)
    return Hit(case.cite(*_PAIR, "image.cuda_compat", "host.gpus"), title=why) if why else None


def _refusal(case: Case) -> str:
    consumer = [kind for kind in kinds(case) if not kind.data_centre]
    if consumer:
        return f"cuda-compat is not for GPUs such as this one ({consumer[0].family}, no data-centre GPU)"
    if cuda.compat_takes(case.image.cuda or "", case.host.gpu_driver or "") is False:
        return f"cuda-compat does not work on the branch of driver {case.host.gpu_driver}"
    return ""


@rule(
    "cuda-compat-needed",
    "CUDA works here only with the forward-compatibility libraries of the image",
    severity="warning",
    fix="put their folder first inside the container: --env LD_LIBRARY_PATH=/usr/local/cuda/compat",
    source="NVIDIA CUDA Compatibility guide, forward compatibility; Apptainer user guide, GPU support",
    about=(*_PAIR, "image.cuda_compat"),
    advice=True,
)
def cuda_compat_needed(case: Case) -> Hit | None:
    """With --nv the host's libcuda stands first in the search path of the container, and the newer one of
    cuda-compat is used only where LD_LIBRARY_PATH names its folder before.
    """
    if not _too_old(case) or _refusal(case) or _names_compat(case):
        return None
    return Hit(case.cite(*_PAIR, "image.cuda_compat"))


def _names_compat(case: Case) -> bool:
    """Tell whether programs find the libraries of cuda-compat, and before the host's driver."""
    named = [posixpath.normpath(folder) for folder in _library_path(case).split(":") if folder]
    before = named[: named.index(_DRIVER)] if _DRIVER in named else named
    return not set(before).isdisjoint(case.image.cuda_compat_folders or _COMPAT)


def _library_path(case: Case) -> str:
    said = case.plan.env.get("LD_LIBRARY_PATH")
    return case.image.environment.get("LD_LIBRARY_PATH", "") if said is None else said


@rule(
    "cuda-compat-outdated",
    "The image puts forward-compatibility libraries in front that are older than the host's driver",
    severity="error",
    fix="take the compat folder out of LD_LIBRARY_PATH: --env LD_LIBRARY_PATH=",
    source="NVIDIA CUDA Compatibility guide, forward compatibility: CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (803)",
    about=("image.cuda_compat", "host.gpu_driver"),
    advice=True,
)
def cuda_compat_outdated(case: Case) -> Hit | None:
    """A user part of the driver that is older than its kernel part does not fit it: every CUDA call ends with
    error 803.

    NVIDIA's images for frameworks name ``compat/lib``, which is not there until they find that the libraries
    of ``compat/lib.real`` are needed; that does no harm.
    """
    if not _names_compat(case) or not older(case.image.cuda_compat, case.host.gpu_driver):
        return None
    line = f"image: LD_LIBRARY_PATH={_library_path(case)}"
    evidence = (*case.cite("image.cuda_compat", "host.gpu_driver"), line)
    return Hit(evidence)


@rule(
    "gpu-newer-than-cuda",
    "The CUDA in the image is older than this kind of GPU",
    severity="warning",
    fix="use an image with a newer CUDA; until then set CUDA_CACHE_PATH to a folder that lasts",
    source="recipes/knowledge/cuda.toml, [[gpu]]; NVIDIA architecture compatibility guides",
    about=("image.cuda", "host.gpus"),
    advice=True,
)
def gpu_newer_than_cuda(case: Case) -> Hit | None:
    """CUDA's libraries have no machine code for a GPU that came after them. What carries PTX is compiled by
    the driver at the first start, which takes minutes; what does not, fails with 'no kernel image is
    available'.
    """
    for kind in kinds(case):
        if older(case.image.cuda, kind.first):
            title = f"{kind.family} GPUs are known from CUDA {kind.first} on; the image has {case.image.cuda}"
            return Hit(case.cite("image.cuda", "host.gpus"), title=title, source=kind.source)
    return None


@rule(
    "gpu-dropped-by-cuda",
    "The CUDA in the image no longer knows this kind of GPU",
    severity="error",
    fix="use an image with an older CUDA",
    source="recipes/knowledge/cuda.toml, [[gpu]]; CUDA Toolkit release notes 12.0 and 13.0",
    about=("image.cuda", "host.gpus"),
    advice=True,
)
def gpu_dropped_by_cuda(case: Case) -> Hit | None:
    """CUDA 12 ended support for Kepler, CUDA 13 for Maxwell, Pascal and Volta. Nothing can be compiled
    backwards, so that its libraries fail there with 'no kernel image is available for execution'.
    """
    for kind in kinds(case):
        # 12.9.1 is still of the series 12.9.
        if older(kind.last, cuda.series(case.image.cuda or "")):
            title = f"CUDA {kind.last} is the last for {kind.family} GPUs; the image has {case.image.cuda}"
            return Hit(case.cite("image.cuda", "host.gpus"), title=title, source=kind.source)
    return None


@rule(
    "gpu-without-driver",
    "The image is made for GPUs, and this host has no NVIDIA driver",
    severity="info",
    fix="nothing for work on CPUs; for GPUs probe a node that has them: toolkit probe on a compute node",
    source="TensorFlow install guide, pip; TensorFlow's wheels open CUDA's libraries when they need them",
    about=("image.cuda",),
    then=("host.gpu_driver",),
    advice=True,
)
def gpu_without_driver(case: Case) -> Hit | Lacks | None:
    """Programs that were built for CUDA start without a GPU and work on the CPU. Login nodes often have no
    GPU where compute nodes do.
    """
    if lacks := missing(case, "host.gpu_driver"):
        return lacks
    return None if case.host.gpu_driver else Hit(case.cite("image.cuda", "host.gpu_driver"))
