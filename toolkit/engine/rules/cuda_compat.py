"""Rules about the NVIDIA driver: whether programs find libcuda, and whether GPU hooks (programs that the
runtime runs before the container starts) fail.

libcuda is either the host's library, which ``--nv`` mounts, or the library in the image's package
cuda-compat.
"""

import posixpath
import re

from toolkit.engine.case import Case
from toolkit.engine.rule import Hit, rule
from toolkit.engine.rules.gpu import PAIR, gpu_kinds, names_gpus, too_old
from toolkit.engine.traits import DRIVER, runtime_of
from toolkit.knowledge import cuda
from toolkit.runtime import apptainer, podman
from toolkit.runtime.enroot import PYXIS, RUNTIME
from toolkit.versions import older, within

_COMPAT = ("/usr/local/cuda/compat",)
"""Default folder of the forward-compatibility libraries (CUDA Compatibility guide)."""
_PATH = "LD_LIBRARY_PATH"
_NV = "--nv"
_REQUIRES = "NVIDIA_REQUIRE_"
_SKIPS = "NVIDIA_DISABLE_REQUIRE"
_PART = re.compile(r"(?P<name>[a-z]+)\s*(?P<sign>>=|<=|!=|==|=|>|<)\s*(?P<value>.+)")
_OF_DATA_CENTRES = frozenset({"tesla", "nvidia", "unknown"})
"""Brands that NVML reports for data-centre GPUs; drivers before R450 report Tesla."""


@rule(
    "cuda-compat-refused",
    "CUDA's forward-compatibility libraries in the image do not work on this host",
    severity="error",
    fix="use an image with an older CUDA; or ask the administrators to install a newer driver",
    source="NVIDIA CUDA Compatibility guide, forward compatibility; recipes/knowledge/cuda.toml, [[compat]]",
    facts=(*PAIR, "image.cuda_compat", "host.gpus"),
    advice=True,
    accelerator="gpu-failure",
)
def cuda_compat_refused(case: Case) -> Hit | None:
    """NVIDIA's package cuda-compat contains the forward-compatibility libraries. It supports only data-centre
    GPUs, and only some branches of the driver. On hosts with other GPUs or drivers, cuInit returns error 804
    (forward compatibility was attempted on non supported HW) or 803 (system has unsupported display driver /
    CUDA driver combination).
    """
    case.have(*PAIR, "image.cuda_compat")
    if not too_old(case):
        return None
    case.ask("host.gpus")
    why = _refusal(case)
    return Hit(case.cite(*PAIR, "image.cuda_compat", "host.gpus"), title=why) if why else None


def _is_loaded(case: Case) -> bool | None:
    return cuda.compat_takes(case.image.cuda or "", case.host.gpu_driver or "")


def _refusal(case: Case) -> str:
    consumer = [kind for kind in gpu_kinds(case) if not kind.data_centre]
    if consumer:
        return f"cuda-compat does not support this GPU ({consumer[0].family}, not a data-centre GPU)"
    if _is_loaded(case) is False:
        return f"cuda-compat does not support the branch of the host's driver ({case.host.gpu_driver})"
    return ""


@rule(
    "cuda-compat-needed",
    "On this host, CUDA works only with the image's forward-compatibility libraries (cuda-compat)",
    severity="warning",
    fix="put the folder of cuda-compat first in LD_LIBRARY_PATH inside the container, before the folder of "
    "the host's driver",
    source="NVIDIA CUDA Compatibility guide, forward compatibility; Apptainer user guide, GPU support",
    facts=(*PAIR, "image.cuda_compat", "image.environment"),
    advice=True,
)
def cuda_compat_needed(case: Case) -> Hit | None:
    """With --nv the loader finds the host's libcuda in /.singularity.d/libs. The loader finds the newer
    libcuda of cuda-compat only if LD_LIBRARY_PATH names cuda-compat's folder first. If you set
    LD_LIBRARY_PATH, name cuda-compat's folder first, then the image's folders, and then the driver's folder.
    Do not leave out the driver's folder, because programs need further libraries of the driver.

    If the table in cuda.toml lacks the CUDA release, toolkit does not know whether cuda-compat works with
    this driver.
    """
    case.have(*PAIR, "image.cuda_compat")
    if not too_old(case) or _refusal(case):
        return None
    _ask_path(case)
    known = _is_loaded(case) is not None
    if known and _names_compat(case):
        return None
    evidence = case.cite(*PAIR, "image.cuda_compat")
    words = _path_with(case, (case.image_facts.cuda_compat_folders or _COMPAT)[0])
    if known:
        return Hit(
            evidence,
            fix=f"put the folder of cuda-compat first in LD_LIBRARY_PATH inside the container: {words}",
        )
    title = (
        f"toolkit does not know whether cuda-compat for CUDA {cuda.series(case.image.cuda or '')} works "
        "with driver "
    )
    title += f"{case.host.gpu_driver}"
    return Hit(
        evidence,
        title=title,
        fix=f"look up this driver and CUDA release in NVIDIA's CUDA Compatibility guide; or try {words}",
    )


def _ask_path(case: Case) -> None:
    """Raise ``Undecided`` if toolkit could not read the image's LD_LIBRARY_PATH and the launch does not set
    the variable.
    """
    if _PATH not in case.plan.env:
        case.ask(f"image.environment.{_PATH}", failed_only=True)


def _names_compat(case: Case) -> bool:
    """Return whether LD_LIBRARY_PATH names a folder of cuda-compat before the folder of the host's driver."""
    named = _library_folders(case)
    before = named[: named.index(DRIVER)] if DRIVER in named else named
    return not set(before).isdisjoint(case.image_facts.cuda_compat_folders or _COMPAT)


def _path_with(case: Case, *folders: str) -> str:
    """Return the option that sets LD_LIBRARY_PATH: first ``folders``, then the image's folders without
    cuda-compat's folders, then the driver's folder.

    The option must name all these folders, because it replaces the values that the image and the runtime set.
    """
    own = (
        f
        for f in _library_folders(case)
        if f not in (*(case.image_facts.cuda_compat_folders or _COMPAT), DRIVER)
    )
    return f"`--env {_PATH}={':'.join((*folders, *own, DRIVER))}`"


def _library_folders(case: Case) -> list[str]:
    return [posixpath.normpath(folder) for folder in _library_path(case).split(":") if folder]


def _library_path(case: Case) -> str:
    said = case.plan.env.get(_PATH)
    return case.image_facts.environment.get(_PATH, "") if said is None else said


@rule(
    "cuda-compat-outdated",
    "Programs load the image's CUDA forward-compatibility libraries, which are older than the host's driver",
    severity="error",
    fix="remove the folder of cuda-compat from LD_LIBRARY_PATH, and keep the other folders",
    source="NVIDIA CUDA Compatibility guide, forward compatibility: CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (803)",
    facts=("image.cuda_compat", "host.gpu_driver", "image.environment"),
    advice=True,
    accelerator="gpu-failure",
)
def cuda_compat_outdated(case: Case) -> Hit | None:
    """cuda-compat contains the user-space libraries of a driver. If these libraries are older than the host's
    driver, every CUDA call returns error 803.

    NVIDIA's framework images name the folder ``compat/lib`` in LD_LIBRARY_PATH. The image's start-up script
    creates ``compat/lib`` only if programs need cuda-compat on the host. If ``compat/lib`` does not exist,
    its entry in LD_LIBRARY_PATH is harmless.
    """
    case.have("image.cuda_compat", "host.gpu_driver")
    if not older(case.image.cuda_compat, case.host.gpu_driver):
        return None
    _ask_path(case)
    if not _names_compat(case):
        return None
    line = f"image: {_PATH}={_library_path(case)}"
    evidence = (*case.cite("image.cuda_compat", "host.gpu_driver"), line)
    title = (
        f"Programs load the image's cuda-compat of driver {case.image.cuda_compat}; the host has the newer "
        f"driver {case.host.gpu_driver}"
    )
    fix = f"remove the folder of cuda-compat from LD_LIBRARY_PATH: {_path_with(case)}"
    return Hit(evidence, title=title, fix=fix)


@rule(
    "library-path-hides-driver",
    "The LD_LIBRARY_PATH of this launch lacks the folder of the host's GPU driver",
    severity="error",
    fix=f"add {DRIVER} to LD_LIBRARY_PATH as the last folder",
    source="apptainer/apptainer:internal/pkg/build/sources/99-base.sh; EESSI/software-layer issue 231",
    facts=("host.gpu_driver", "image.cuda"),
    advice=True,
    accelerator="gpu-failure",
)
def library_path_hides_driver(case: Case) -> Hit | None:
    """--nv mounts the driver's libraries into /.singularity.d/libs, and the runtime adds this folder to
    LD_LIBRARY_PATH. A value of LD_LIBRARY_PATH that you set inside the container replaces the runtime's
    value. If your value lacks the driver's folder, programs find no libcuda.so.1, and train on the CPU or
    fail. If you set APPTAINERENV_LD_LIBRARY_PATH instead, the runtime adds the driver's folder to your value.
    """
    case.have("host.gpu_driver")
    given = case.plan.env.get(_PATH)
    if given is None or DRIVER in _library_folders(case):
        return None
    asked = _NV in case.plan.container
    if not asked:
        case.ask("image.cuda")
    if not asked and not case.image.cuda:
        return None
    evidence = (f"plan: {_PATH}={given}", *case.cite("host.gpu_driver"))
    fix = f"`--env {_PATH}={':'.join((*_library_folders(case), DRIVER))}`"
    # Without --nv, programs use no GPU, so an LD_LIBRARY_PATH without the driver's folder causes no failure.
    return Hit(evidence, fix=fix, severity="error" if asked else "warning")


@rule(
    "driver-not-searched",
    "No script in the image adds the host's GPU driver to the library path",
    severity="error",
    fix=f"set `--env {_PATH}={DRIVER}`; or let Apptainer make a new image folder from the original image: "
    "`apptainer build --sandbox DIR ORIGINAL`",
    source="apptainer/apptainer:internal/pkg/build/sources/99-base.sh; measured with Apptainer 1.4.5",
    facts=("host.gpu_driver",),
    advice=True,
    accelerator="gpu-failure",
)
def driver_not_searched(case: Case) -> Hit | None:
    """--nv mounts the driver's libraries into /.singularity.d/libs. When Apptainer builds an image, it writes
    a script into /.singularity.d/env that adds /.singularity.d/libs to LD_LIBRARY_PATH. A sandbox (an image
    as a folder) that a program other than Apptainer made does not have this script. Programs in such a
    sandbox do not find libcuda.so.1.
    """
    case.have("host.gpu_driver")
    image, runtime = case.image_facts, case.host_facts.runtime
    started = runtime is None or runtime.name in apptainer.NAMES
    if image.driver_searched is not False or not started or _NV not in case.plan.container:
        return None
    if case.plan.env.get(_PATH):
        return None  # the rule library-path-hides-driver judges a value that the launch sets
    return Hit(
        ("image: no script in /.singularity.d/env names the driver's folder", *case.cite("host.gpu_driver"))
    )


@rule(
    "gpu-hook-refuses-driver",
    "The image requires a newer NVIDIA driver, so enroot does not start the container",
    severity="error",
    fix=(
        "use an image with an older CUDA; or, if the driver supports the major CUDA release of this image, "
        "export NVIDIA_DISABLE_REQUIRE=1 before you submit; or ask the administrators to install a newer "
        "driver"
    ),
    source=(
        "NVIDIA/enroot:conf/hooks/98-nvidia.sh (--require); NVIDIA/libnvidia-container:src/cli/dsl.c; "
        "NVIDIA/JAX-Toolbox issue 165 ('requirement error: unsatisfied condition: cuda>=12.2')"
    ),
    facts=("host.runtime", "host.gpus", "host.gpu_driver", "image.environment", "image.cuda"),
)
def gpu_hook_refuses_driver(case: Case) -> Hit | None:
    """NVIDIA's images set NVIDIA_REQUIRE_CUDA to a list of conditions. The conditions accept a driver that
    supports a certain CUDA release, or a driver of a branch that cuda-compat supports. enroot's hook passes
    the list to nvidia-container-cli, which fails if the driver meets none of the conditions.
    """
    host, kind = case.host_facts, runtime_of(case.host_facts)
    if host.runtime is None or kind not in (RUNTIME, PYXIS) or not host.gpus or not names_gpus(case):
        return None
    given = {**case.image_facts.environment, **host.environment, **case.plan.env}
    wanted = {name: value for name, value in given.items() if name.startswith(_REQUIRES) and value}
    if not wanted or given.get(_SKIPS):
        return None
    case.ask("host.gpu_driver", failed_only=True)
    driver = host.gpu_driver or ""
    for name, value in wanted.items():
        parts = [[_holds(case, part, driver) for part in one.split(",")] for one in value.split()]
        if parts and all(False in one for one in parts):
            supported, first = cuda.cuda_of_driver(driver), value.split()[0]
            because = f"the image requires {first}; driver {driver} supports only CUDA {supported}"
            evidence = (f"image: environment: {name}={value}", *case.cite("host.gpu_driver"))
            return Hit(evidence, "unavailable", because, because[0].upper() + because[1:])
    return None


def _holds(case: Case, condition: str, driver: str) -> bool | None:
    """Return whether one comparison in NVIDIA_REQUIRE_CUDA, such as ``cuda>=12.2``, is true for a driver;
    ``None`` if toolkit cannot decide.
    """
    found = _PART.fullmatch(condition.strip())
    if found is None:
        return None
    name, sign, value = found["name"], found["sign"], found["value"]
    bounds = f"{'==' if sign == '=' else sign}{value}"
    if name == "driver":
        return within(driver, bounds)
    supported = cuda.cuda_of_driver(driver)
    if name == "cuda" and supported:
        return within(supported, bounds)
    kinds = gpu_kinds(case)
    if name == "brand" and sign in {"=", "=="} and kinds:
        return (value in _OF_DATA_CENTRES) == kinds[0].data_centre
    return None


@rule(
    "gpu-hook-lacks-rights",
    "podman's GPU hook fails because it runs as an ordinary user",
    severity="error",
    fix="pass the GPUs with CDI and `--userns=keep-id`: `--device=nvidia.com/gpu=all --userns=keep-id`",
    source=(
        "NVIDIA/nvidia-container-toolkit issue 648 ('error executing hook nvidia-cdi-hook'); "
        "NVIDIA/nvidia-container-runtime issues 85 and 145, NVIDIA/nvidia-docker issue 1565 (--hooks-dir)"
    ),
    facts=("host.runtime", "host.gpus"),
)
def gpu_hook_lacks_rights(case: Case) -> Hit | None:
    """podman mounts GPUs through CDI (Container Device Interface) or through an older hook (--hooks-dir). CDI
    runs hooks that write into the root folder of the container. With --userns=nomap, the user does not own
    this folder, so these hooks fail. The older hook changes cgroups, which an ordinary user cannot do. The
    older hook therefore needs 'no-cgroups = true' in /etc/nvidia-container-runtime/config.toml.
    """
    host, words = case.host_facts, case.plan.container
    if runtime_of(host) is not podman or not host.gpus:
        return None
    said = " ".join(words)
    evidence = (f"plan: {said}", *case.cite("host.gpus"))
    by_cdi = podman.CDI in said
    if by_cdi and podman.UNMAPPED in said:
        because = f"with {podman.UNMAPPED}, CDI's GPU hook cannot write into the container"
        return Hit(evidence, "unavailable", because, because)
    if by_cdi or podman.HOOKS not in said:
        return None
    because = (
        "the GPU hook in --hooks-dir fails without 'no-cgroups = true' in "
        "/etc/nvidia-container-runtime/config.toml, which toolkit did not read"
    )
    return Hit(evidence, "unknown", because)
