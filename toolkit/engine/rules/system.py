"""Rules about kernel, processor, GPU and C library: whether the host can run the image's programs."""

from toolkit.engine.case import Case
from toolkit.engine.rule import Hit, rule
from toolkit.engine.rules.gpu import gpu_kinds
from toolkit.engine.traits import bind_targets
from toolkit.knowledge import cuda, glibc
from toolkit.knowledge.glibc import Instructions
from toolkit.model.prediction import Outcome
from toolkit.versions import older, within

_NV, _ROCM = "--nv", "--rocm"
_OF_C_LIBRARY = {"/", "/usr", "/lib", "/lib64", "/usr/lib64"}
"""Folders that contain an image's C library or its loader."""
_OF_DEBIAN = ("debian", "ubuntu")
_OF_SOURCE = "a0"
"""A PyTorch that was built from a commit has this text in its version, such as ``2.6.0a0+ecf3b`` in NVIDIA's
images.
"""


@rule(
    "kernel-too-old",
    "The host's kernel is too old for the C library in the image",
    severity="error",
    fix="use an image with an older distribution; or ask the administrators to install a newer kernel",
    source="recipes/knowledge/glibc.toml, [[kernel]]",
    facts=("host.kernel", "host.architecture", "image.glibc"),
)
def kernel_too_old(case: Case) -> Hit | None:
    """A container uses the kernel of its host, and every release of glibc needs a minimum kernel release. On
    an older kernel, each program fails with 'FATAL: kernel too old'.
    """
    case.ask("host.kernel", "image.glibc", failed_only=True)
    row = glibc.oldest_kernel(case.image_facts.glibc or "", case.host_facts.architecture)
    if row is None or not older(case.host_facts.kernel, row.kernel):
        return None
    because = (
        f"glibc {case.image_facts.glibc} needs Linux {row.kernel}; the host has {case.host_facts.kernel}"
    )
    evidence = case.cite("image.glibc", "host.kernel")
    return Hit(evidence, "loader-failure", because, title=because, source=row.source)


@rule(
    "image-needs-newer-processor",
    "Libraries of the image need a newer processor than the host has",
    severity="error",
    fix="use an image that was built for the x86-64 level of the host's processor or a lower level; or use "
    "nodes with newer processors",
    source="recipes/knowledge/glibc.toml, cpu; glibc: 'CPU ISA level is lower than required'",
    facts=("image.cpu_level", "host.cpu_level"),
)
def image_needs_newer_processor(case: Case) -> Hit | None:
    """A library can declare the x86-64 level that it needs. On a processor below the library's level, glibc
    refuses to load the library: 'CPU ISA level is lower than required'. If the library does not declare its
    level, it fails on such a processor with 'Illegal instruction'.
    """
    case.ask("image.cpu_level", failed_only=True)
    wanted = glibc.level(case.image_facts.cpu_level or "")
    if not wanted:  # no library declares a level above x86-64-v1
        return None
    found = glibc.level(case.host.cpu_level or "")
    if found is None or found >= wanted:
        return None
    pair = f"library in the image needs {case.image.cpu_level}; the host's processor is {case.host.cpu_level}"
    evidence = case.cite("image.cpu_level", "host.cpu_level")
    return Hit(evidence, "loader-failure", f"a {pair}", title=f"A {pair}")


@rule(
    "tensorflow-needs-avx",
    "TensorFlow uses AVX instructions, which this processor lacks",
    severity="error",
    fix=(
        "use nodes with newer processors, or a TensorFlow that was built for old processors "
        "(conda-forge, Open-CE)"
    ),
    source="recipes/knowledge/glibc.toml, avx; TensorFlow install guide, pip",
    facts=("image.tensorflow", "host.cpu_level"),
    advice=True,
)
def tensorflow_needs_avx(case: Case) -> Hit | None:
    """TensorFlow's wheels for x86-64 use AVX without checking the processor. On a processor without AVX,
    ``import tensorflow`` fails with 'Illegal instruction'.
    """
    case.have("image.tensorflow", "host.cpu_level")
    row = glibc.glibc().avx
    if not within(case.image.tensorflow or "", row.versions):
        return None
    return _judge_lacking(case, row)


def _judge_lacking(case: Case, row: Instructions) -> Hit | None:
    evidence = case.cite("image.tensorflow", "host.cpu_level")
    if case.host.cpu_level in row.lacking:
        return Hit(evidence)
    if case.host.cpu_level in row.doubtful:
        title = f"TensorFlow uses AVX instructions, which not every {case.host.cpu_level} processor has"
        return Hit(
            evidence,
            severity="info",
            title=title,
            fix="check for avx on a node: `grep -m1 avx /proc/cpuinfo`",
        )
    return None


@rule(
    "gpu-libraries-need-newer-glibc",
    "The host's GPU libraries need a newer C library than the image has",
    severity="error",
    fix="use an image with a newer distribution, whose glibc is new enough for these libraries",
    source=(
        "Apptainer user guide, GPU support: libraries of the host in /.singularity.d/libs; "
        "apptainer/apptainer pull request 2606 (--rocm)"
    ),
    facts=(
        *("host.gpu_driver", "host.gpu_libraries_glibc", "host.amd_gpus"),
        *("image.glibc", "image.cuda", "image.pytorch_rocm"),
    ),
)
def gpu_libraries_need_newer_glibc(case: Case) -> Hit | None:
    """``--nv`` mounts libraries of the host's driver into the container. The driver's libraries need at least
    the glibc version for which they were built. With an older glibc in the image, the driver's libraries fail
    with "version `GLIBC_2.xx' not found". If the driver's libraries do not load, programs built for CUDA do
    not start; other programs run without the GPU. ``--rocm`` mounts the host's libdrm and libnuma, which
    programs for ROCm load; both libraries also need a new enough glibc.
    """
    needed, has = case.host_facts.gpu_libraries_glibc, case.image_facts.glibc
    if _ROCM in case.plan.container and older(has, needed):
        case.ask("host.amd_gpus", failed_only=True)
    rocm = _ROCM in case.plan.container and bool(case.host_facts.amd_gpus)
    asked = rocm or _NV in case.plan.container
    if asked:
        case.ask("host.gpu_libraries_glibc", "image.glibc", failed_only=True)
    if asked and not (rocm and case.request.gpus):
        case.ask("image.pytorch_rocm" if rocm else "image.cuda", failed_only=True)
    if not asked and not (case.host_facts.gpu_driver and case.image_facts.cuda):
        return None
    if not older(has, needed):
        return None
    used = (case.request.gpus or case.image_facts.pytorch_rocm) if rocm else case.image_facts.cuda
    whose = "libraries that `--rocm` mounts" if rocm else "driver's libraries"
    pair = f"{whose} need glibc {needed}; the image has {has}"
    evidence = case.cite("host.gpu_libraries_glibc", "image.glibc")
    outcome: Outcome | None = "loader-failure" if asked and used else None
    return Hit(evidence, outcome, f"the {pair}", title=f"The {pair}")


@rule(
    "gpu-rocm-libraries-newer",
    "The host's ROCm libraries may need newer C or C++ libraries than the image has",
    severity="warning",
    fix=(
        "use an image whose distribution is as new as the host's; or leave out `--rocm`, and use the "
        "ROCm of the image with `--bind /dev/kfd --bind /dev/dri`"
    ),
    source="Apptainer user guide, GPU support (--rocm); ROCm/AMDMIGraphX issue 3965 (GLIBCXX_3.4.32)",
    facts=("host.glibc", "image.glibc"),
    advice=True,
)
def gpu_rocm_libraries_newer(case: Case) -> Hit | None:
    """``--rocm`` mounts the host's ROCm libraries, which were built for the host's C and C++ libraries. If
    the image's C and C++ libraries are older, the loader stops with a message such as "version
    `GLIBCXX_3.4.30' not found".
    """
    if _ROCM not in case.plan.container or not case.host_facts.amd_gpus:
        return None
    case.ask("host.glibc", "image.glibc", failed_only=True)
    host, image = case.host_facts.glibc, case.image_facts.glibc
    if not older(image, host):
        return None
    title = f"`--rocm` mounts ROCm libraries of a host with glibc {host}; the image has {image}"
    return Hit(case.cite("host.glibc", "image.glibc"), title=title)


@rule(
    "bind-hides-c-library",
    "A bind hides the image's C library or loader behind a folder of the host",
    severity="error",
    fix="leave out the bind, or bind to another path: `--bind /usr/lib64:/host/lib64`",
    source=(
        "apptainer/singularity issues 1988 ('-B /lib64'), 1287 and 5060; "
        "ld.so(8): version `GLIBC_2.xx' not found"
    ),
    facts=("host.glibc", "host.distribution", "image.glibc", "image.glibc_needed", "image.distribution"),
)
def bind_hides_c_library(case: Case) -> Hit | None:
    """If a bind hides the image's C library or loader, programs of the image load the host's C library, or
    start with the host's loader. If the host's C library is older, it lacks symbol versions that programs of
    the image need. A loader and a C library of different releases do not work together.
    """
    hidden = [target for target in bind_targets(case.plan) if target in _OF_C_LIBRARY]
    if not hidden:
        return None
    case.ask("host.glibc", "host.distribution", "image.glibc", "image.distribution")
    inside, outside = case.image_facts.glibc, case.host_facts.glibc
    if inside is None or outside is None or inside == outside:
        return None
    evidence = (*case.cite("host.glibc", "image.glibc"), *(f"plan: a bind to {target}" for target in hidden))
    shown = f"the bind to {hidden[0]} hides the image's glibc {inside}; the host has {outside}"
    of_debian = (case.host_facts.distribution or "").startswith(_OF_DEBIAN)
    if not (case.image_facts.distribution or "").startswith(_OF_DEBIAN):
        if of_debian and "/lib64" in hidden:
            because = (
                "the bind puts the host's /lib64 over the image's /lib64; on a Debian or Ubuntu host, "
                "the loader in /lib64 is a link to a file that the image does not have"
            )
            return Hit(evidence, "loader-failure", because)
        lacks = older(outside, case.image_facts.glibc_needed or inside) or older(outside, inside)
        return Hit(evidence, "loader-failure" if lacks else "unknown", shown)
    # In an image with Debian or Ubuntu, /lib64 contains the loader, but not the C library.
    if "/lib64" not in hidden and not {"/", "/usr", "/lib"} & set(hidden):
        return None
    return Hit(evidence, "unknown" if of_debian else "loader-failure", shown)


@rule(
    "image-glibc-too-old",
    "A program or library in the image needs a newer C library than the image has",
    severity="warning",
    fix="rebuild the image; add only programs and wheels built for the image's glibc or an older glibc",
    source="ld.so(8): version `GLIBC_2.xx' not found",
    facts=("image.glibc", "image.glibc_needed"),
    advice=True,
)
def image_glibc_too_old(case: Case) -> Hit | None:
    """A program, library or wheel that was built on a newer distribution can need symbol versions that the
    image's glibc does not have. The loader then refuses the program or library.
    """
    case.have("image.glibc", "image.glibc_needed")
    if not older(case.image.glibc, case.image.glibc_needed):
        return None
    title = f"A file in the image needs glibc {case.image.glibc_needed}; the image has {case.image.glibc}"
    return Hit(case.cite("image.glibc_needed", "image.glibc"), title=title)


@rule(
    "pytorch-lacks-gpu-code",
    "PyTorch in the image has no machine code for this kind of GPU",
    severity="error",
    fix="use an image whose PyTorch was built for a CUDA release that supports the GPU; PyTorch's package "
    "index has wheels for several CUDA releases",
    source=(
        "recipes/knowledge/cuda.toml, [[gpu]] and [[pytorch_gpu]]; "
        "pytorch/pytorch:.ci/manywheel/build_cuda.sh; "
        "PrateekMunjal/TorchAL issue 4 (A100), amithkk/stable-diffusion-k8s issue 10 (H100)"
    ),
    facts=("host.gpus", "image.pytorch", "image.pytorch_cuda"),
    advice=True,
    accelerator="gpu-failure",
)
def pytorch_lacks_gpu_code(case: Case) -> Hit | None:
    """A PyTorch wheel has machine code for GPUs that the wheel's CUDA release supports. Some wheels also have
    PTX code, which the driver compiles for newer GPUs. On a GPU for which the wheel has neither, each kernel
    fails: 'no kernel image is available for execution on the device'. The rule does not judge a PyTorch that
    was built from source, because such a PyTorch may have code for more GPUs than the wheels.
    """
    case.have("host.gpus", "image.pytorch", "image.pytorch_cuda")
    version, built = case.image.pytorch or "", cuda.series(case.image.pytorch_cuda or "")
    if _OF_SOURCE in version or not built:
        return None
    rows = [row for row in cuda.cuda().pytorch_gpu if within(built, row.versions)]
    for kind in gpu_kinds(case):
        evidence = case.cite("host.gpus", "image.pytorch", "image.pytorch_cuda")
        first = cuda.first_with_code(kind)
        if older(built, first):
            title = (
                f"{kind.family} GPUs need CUDA {first} or later; PyTorch {version} was built for CUDA {built}"
            )
            return Hit(evidence, title=title)
        row = next((r for r in rows if within(kind.compute, r.compute)), None)
        if row:
            gpu = f"{kind.family} GPUs (compute capability {kind.compute})"
            title = f"PyTorch {version} for CUDA {built} has no code for {gpu}"
            return Hit(evidence, title=title, source=row.source)
    return None


@rule(
    "gpu-newer-than-rocm",
    "PyTorch in the image was built for a ROCm release that does not support this kind of AMD GPU",
    severity="error",
    fix="use an image whose PyTorch was built for a newer ROCm",
    source="recipes/knowledge/cuda.toml, [[amd_gpu]]",
    facts=(),
    advice=True,
    accelerator="gpu-failure",
)
def gpu_newer_than_rocm(case: Case) -> Hit | None:
    """A program for ROCm has machine code only for the GPU architectures for which it was built. On other
    GPUs, the program fails with 'HIP error: invalid device function'.
    """
    built, there = case.image_facts.pytorch_rocm, case.host_facts.amd_gpus or ()
    for row in cuda.cuda().amd_gpu:
        if row.name in there and older(built, row.first):
            title = f"{row.name} needs ROCm {row.first} or later; PyTorch was built for ROCm {built}"
            return Hit(case.cite("host.amd_gpus", "image.pytorch_rocm"), title=title, source=row.source)
    return None
