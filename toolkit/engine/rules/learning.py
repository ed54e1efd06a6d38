"""Rules about TensorFlow, PyTorch, cuDNN and NCCL on GPUs. These rules do not change the predicted
outcome of a launch.
"""

import posixpath

from toolkit.engine.case import Case
from toolkit.engine.rule import Hit, rule
from toolkit.engine.rules.gpu import gpu_kinds
from toolkit.folders import is_below
from toolkit.knowledge import cuda
from toolkit.knowledge.cuda import Gpu, Wheel
from toolkit.versions import older, within


@rule(
    "tensorflow-without-gpu",
    "The host has GPUs, but the TensorFlow in the image was built without CUDA",
    severity="warning",
    fix="install tensorflow[and-cuda] instead of tensorflow-cpu, or use this image on nodes without GPUs",
    source="TensorFlow install guide, pip",
    facts=("host.gpu_driver", "image.tensorflow", "image.tensorflow_cuda"),
    advice=True,
    accelerator="cpu-only",
)
def tensorflow_without_gpu(case: Case) -> Hit | None:
    """A TensorFlow built for CPUs runs on a GPU node without any message, and does not use the GPUs."""
    case.have("host.gpu_driver", "image.tensorflow")
    if case.image.tensorflow_cuda:
        return None
    return Hit(case.cite("host.gpu_driver", "image.tensorflow", "image.tensorflow_cuda"))


@rule(
    "pytorch-without-gpu",
    "The host has GPUs, but the PyTorch in the image was built without CUDA",
    severity="warning",
    fix="install a CUDA build of PyTorch in the image, or use this image on nodes without GPUs",
    source="PyTorch install guide: builds for CPU and for CUDA; torch.version.cuda",
    facts=("host.gpu_driver", "image.pytorch", "image.pytorch_cuda"),
    advice=True,
    accelerator="cpu-only",
)
def pytorch_without_gpu(case: Case) -> Hit | None:
    """A PyTorch built for CPUs returns False from ``torch.cuda.is_available()`` on every host."""
    case.have("host.gpu_driver", "image.pytorch")
    if case.image.pytorch_cuda:
        return None
    return Hit(case.cite("host.gpu_driver", "image.pytorch", "image.pytorch_cuda"))


@rule(
    "tensorflow-cuda-missing",
    "TensorFlow does not find the CUDA release that it was built for",
    severity="warning",
    fix="install the CUDA that TensorFlow was built with: `pip install 'tensorflow[and-cuda]'`; "
    "or use a base image with this CUDA",
    source="TensorFlow source, dso_loader; TensorFlow install guide, tested build configurations",
    facts=("host.gpu_driver", "image.tensorflow_cuda", "image.cuda"),
    advice=True,
    accelerator="cpu-only",
)
def tensorflow_cuda_missing(case: Case) -> Hit | None:
    """TensorFlow opens CUDA's libraries by names such as ``libcudart.so.12``: the number is the major CUDA
    release that TensorFlow was built for. If the libraries are missing, TensorFlow prints 'Could not load
    dynamic library' or 'Cannot dlopen some GPU libraries' and trains on the CPU.
    """
    case.have("host.gpu_driver", "image.tensorflow_cuda")
    wanted, found = case.image.tensorflow_cuda or "", case.image.cuda
    if found and cuda.major(found) == cuda.major(wanted):
        return None
    title = f"TensorFlow needs CUDA {wanted}; the image has {found or 'none'}"
    return Hit(case.cite("image.tensorflow_cuda", "image.cuda"), title=title)


@rule(
    "tensorflow-cudnn-mismatch",
    "TensorFlow needs a different cuDNN release than the image has",
    severity="error",
    fix="install the cuDNN that TensorFlow was built with, or a newer cuDNN of the same major release",
    source="TensorFlow source, cuda_dnn: 'Loaded runtime CuDNN library: … but source was compiled with: …'",
    facts=("host.gpu_driver", "image.tensorflow_cudnn", "image.cudnn"),
    advice=True,
    accelerator="gpu-failure",
)
def tensorflow_cudnn_mismatch(case: Case) -> Hit | None:
    """TensorFlow works with the cuDNN release that it was built with, and with newer cuDNN releases that have
    the same major number. TensorFlow does not work with older releases. A cuDNN of another major release has
    a different library name, so TensorFlow does not find the library.

    With a wrong cuDNN, TensorFlow fails at the first convolution, or trains on the CPU.
    """
    case.have("host.gpu_driver", "image.tensorflow_cudnn")
    wanted, found = case.image.tensorflow_cudnn or "", case.image.cudnn
    if (
        found
        and cuda.major(found) == cuda.major(wanted)
        and not older(cuda.series(found), cuda.series(wanted))
    ):
        return None
    title = f"TensorFlow needs cuDNN {wanted}; the image has {found or 'none'}"
    return Hit(case.cite("image.tensorflow_cudnn", "image.cudnn"), title=title)


def _wheel(case: Case) -> Wheel | None:
    version = case.image.tensorflow or ""
    return next((row for row in cuda.cuda().tensorflow if within(version, row.versions)), None)


def _compiled_at_start(kind: Gpu, wheel: Wheel) -> bool:
    """Return whether a wheel has no machine code for a GPU, so the driver must compile the wheel's PTX code.

    For example, machine code for compute capability 8.0 also runs on GPUs with compute capability 8.6, but
    not on GPUs with 7.5 or 9.0 (CUDA C++ Programming Guide, binary compatibility).
    """
    same = [c for c in wheel.native if cuda.major(c) == cuda.major(kind.compute)]
    return all(older(kind.compute, c) for c in same) and not older(kind.compute, wheel.ptx)


@rule(
    "tensorflow-compiles-at-start",
    "TensorFlow has no machine code for this GPU, so the driver compiles PTX code at the first start",
    severity="info",
    fix=(
        "to keep the compiled code between jobs, set CUDA_CACHE_PATH to a folder that remains after the job, "
        "and CUDA_CACHE_MAXSIZE=4294967296 (4 GiB); or use a newer TensorFlow"
    ),
    source="recipes/knowledge/cuda.toml, [[tensorflow]]; CUDA C++ Programming Guide, just-in-time code",
    facts=("host.gpus", "image.tensorflow", "image.tensorflow_cuda"),
    advice=True,
)
def tensorflow_compiles_at_start(case: Case) -> Hit | None:
    """At the first start, the driver compiles TensorFlow's PTX code, which takes minutes. The driver compiles
    the code again on each node whose cache lacks the result.
    """
    case.have("host.gpus", "image.tensorflow", "image.tensorflow_cuda")
    wheel = _wheel(case)
    kind = next((k for k in gpu_kinds(case) if wheel and _compiled_at_start(k, wheel)), None)
    if wheel is None or kind is None:
        return None
    evidence = case.cite("image.tensorflow", "image.tensorflow_cuda", "host.gpus")
    return Hit(evidence, source=wheel.source)


@rule(
    "tensorflow-ptx-too-new",
    "The driver cannot compile TensorFlow's PTX code for this GPU",
    severity="error",
    fix=(
        "use a TensorFlow that has machine code for this GPU; or ask the administrators to install a "
        "newer driver"
    ),
    source="NVIDIA CUDA Compatibility guide: CUDA_ERROR_UNSUPPORTED_PTX_VERSION (222)",
    facts=("host.gpus", "host.gpu_driver", "image.tensorflow", "image.tensorflow_cuda"),
    advice=True,
    accelerator="gpu-failure",
)
def tensorflow_ptx_too_new(case: Case) -> Hit | None:
    """For the host's GPU, TensorFlow has only PTX code. This PTX code is from a newer CUDA release than the
    driver supports, so the driver refuses the code with 'the provided PTX was compiled with an unsupported
    toolchain'.
    """
    case.have("host.gpus", "host.gpu_driver", "image.tensorflow", "image.tensorflow_cuda")
    wheel = _wheel(case)
    if wheel is None or not older(case.host.gpu_driver, cuda.full_driver(wheel.cuda)):
        return None
    if not any(_compiled_at_start(kind, wheel) for kind in gpu_kinds(case)):
        return None
    evidence = case.cite("image.tensorflow", "image.tensorflow_cuda", "host.gpus", "host.gpu_driver")
    return Hit(evidence)


@rule(
    "tensorflow-lacks-gpu-code",
    "TensorFlow no longer has code for this kind of GPU",
    severity="error",
    fix="use an older TensorFlow, or a TensorFlow that was built for this GPU",
    source="recipes/knowledge/cuda.toml, [[tensorflow]]",
    facts=("host.gpus", "image.tensorflow", "image.tensorflow_cuda"),
    advice=True,
    accelerator="gpu-failure",
)
def tensorflow_lacks_gpu_code(case: Case) -> Hit | None:
    """TensorFlow contains no code for GPUs as old as the host's GPU. TensorFlow prints 'Ignoring visible gpu
    device' and skips the GPU, or its kernels fail on the GPU.
    """
    case.have("host.gpus", "image.tensorflow", "image.tensorflow_cuda")
    wheel = _wheel(case)
    if wheel is None:
        return None
    for kind in gpu_kinds(case):
        if all(older(kind.compute, c) for c in wheel.native):
            gpu = f"{kind.family} GPUs (compute capability {kind.compute})"
            title = f"TensorFlow {case.image.tensorflow} has no code for {gpu}"
            return Hit(case.cite("image.tensorflow", "host.gpus"), title=title, source=wheel.source)
    return None


@rule(
    "cudnn-dropped-gpu",
    "The cuDNN in the image no longer supports this kind of GPU",
    severity="error",
    fix="install cuDNN 9.10.2: `pip install 'nvidia-cudnn-cu12<9.11'`",
    source="recipes/knowledge/cuda.toml, [[cudnn_gpu]]",
    facts=("host.gpus", "image.cudnn"),
    advice=True,
    accelerator="gpu-failure",
)
def cudnn_dropped_gpu(case: Case) -> Hit | None:
    """From 9.11 on, cuDNN has no code for Maxwell, Pascal and Volta, so the first convolution fails with
    CUDNN_STATUS_ARCH_MISMATCH. TensorFlow 2.20 and later accept any cuDNN 9. pip therefore installs the
    newest cuDNN 9, which does not support these GPUs.
    """
    case.have("host.gpus", "image.cudnn")
    return _dropped_gpu(case, "image.cudnn", case.image.cudnn or "", "cuDNN", cuda.cuda().cudnn_gpu)


@rule(
    "nccl-lacks-gpu",
    "The NCCL in the image has no code for this kind of GPU",
    severity="warning",
    fix="install NCCL 2.25 or later for Blackwell GPUs, or NCCL before 2.28 for Maxwell and Kepler GPUs",
    source="recipes/knowledge/cuda.toml, [[nccl_gpu]]",
    facts=("host.gpus", "image.nccl"),
    advice=True,
)
def nccl_lacks_gpu(case: Case) -> Hit | None:
    """NCCL runs its own kernels on the GPU. For a GPU that is newer than the NCCL release, the driver must
    compile the kernels from PTX code at start. If NCCL contains no suitable PTX code, the kernels fail. On a
    GPU that NCCL no longer supports, the kernels fail.
    """
    case.have("host.gpus", "image.nccl")
    return _dropped_gpu(case, "image.nccl", case.image.nccl or "", "NCCL", cuda.cuda().nccl_gpu)


def _dropped_gpu(
    case: Case, name: str, version: str, label: str, rows: tuple[cuda.Dropped, ...]
) -> Hit | None:
    for kind in gpu_kinds(case):
        for row in rows:
            if within(version, row.versions) and within(kind.compute, row.compute):
                gpu = f"{kind.family} GPUs (compute capability {kind.compute})"
                title = f"{label} {version} has no code for {gpu}"
                return Hit(case.cite(name, "host.gpus"), title=title, source=row.source)
    return None


@rule(
    "nccl-cuda-mismatch",
    "The NCCL in the image was built for a different CUDA release than the image has",
    severity="warning",
    fix=(
        "install the NCCL package for the CUDA of the image: nvidia-nccl-cu11, nvidia-nccl-cu12 or "
        "nvidia-nccl-cu13"
    ),
    source="recipes/knowledge/cuda.toml, [[nccl]]",
    facts=("image.nccl", "image.cuda"),
    advice=True,
)
def nccl_cuda_mismatch(case: Case) -> Hit | None:
    """NVIDIA builds each release of NCCL for some major releases of CUDA. The driver must support the CUDA
    release for which NCCL was built, even if the image has another CUDA release.
    """
    case.have("image.nccl", "image.cuda")
    release = cuda.major(case.image.cuda or "")
    row = next((r for r in cuda.cuda().nccl if r.cuda == release), None)
    if row is None or cuda.series(case.image.nccl or "") == "" or within(case.image.nccl or "", row.versions):
        return None
    title = f"NCCL {case.image.nccl} was not built for CUDA {release}, which the image has"
    return Hit(case.cite("image.nccl", "image.cuda"), title=title, source=row.source)


@rule(
    "nccl-known-bad",
    "This release of NCCL has a known fault",
    severity="warning",
    fix="install another release of NCCL, from the wheel nvidia-nccl-cu12 or -cu13",
    source="recipes/knowledge/cuda.toml, [[nccl_bad]]",
    facts=("image.nccl",),
    advice=True,
)
def nccl_known_bad(case: Case) -> Hit | None:
    """Some releases of NCCL hang or crash in correct jobs. A later NCCL release of the same major version can
    replace the release that the framework was built with.
    """
    case.have("image.nccl")
    version = case.image.nccl or ""
    row = next(
        (r for r in cuda.cuda().nccl_bad if cuda.series(version) and within(version, r.versions)), None
    )
    if row is None:
        return None
    title = f"NCCL {version}: {row.because}; {row.instead} does not have the fault"
    return Hit(case.cite("image.nccl"), title=title, source=row.source)


@rule(
    "nccl-needs-plugin",
    "The image does not have the plugin that NCCL needs for the host's network",
    severity="warning",
    fix=(
        "install aws-ofi-nccl and the libfabric that it needs in the image, or bind the plugin of the "
        "computing centre; then check that NCCL prints 'NET/OFI' with NCCL_DEBUG=INFO"
    ),
    source="aws/aws-ofi-nccl:README.md; NVIDIA NCCL user guide, NCCL_NET_PLUGIN",
    facts=("image.nccl", "host.fabrics", "image.nccl_ofi", "image.pytorch_rocm", "host.amd_gpus"),
    advice=True,
)
def nccl_needs_plugin(case: Case) -> Hit | None:
    """NCCL itself supports InfiniBand and RoCE. For EFA and Slingshot, NCCL needs the plugin aws-ofi-nccl
    (libnccl-net.so or libnccl-net-ofi.so). Without the plugin, NCCL uses TCP, at a fraction of the speed.
    With NCCL_DEBUG=INFO, NCCL prints 'NET/OFI' if it uses the plugin, and 'Using network Socket' if it uses
    TCP.

    Every PyTorch for ROCm contains RCCL, AMD's version of NCCL, which needs the same plugin.
    """
    rccl = bool(case.image_facts.pytorch_rocm and case.host_facts.amd_gpus)
    name = "image.pytorch_rocm" if rccl else "image.nccl"
    case.have(name, "host.fabrics")
    row = cuda.cuda().nccl_plugin
    spoken = sorted(set(case.host.fabrics or ()) & set(row.fabrics))
    if not spoken or case.request.nodes == 1 or _brings_plugin(case):
        return None
    if case.image.nccl_ofi:
        return _plugin_out_of_reach(case, case.image.nccl_ofi, spoken)
    library = "RCCL" if rccl else "NCCL"
    network = " and ".join(spoken)
    title = f"{library} would use TCP on {network}, because the image lacks {row.library}"
    return Hit(case.cite(name, "host.fabrics", "image.nccl_ofi"), title=title)


def _brings_plugin(case: Case) -> bool:
    """Return whether the launch probably provides an NCCL plugin. toolkit looks for the words nccl, rccl and
    aws-ofi in LD_LIBRARY_PATH, in binds, and in container options, such as Shifter's
    ``--module=nccl-plugin``.
    """
    given = case.plan.env.get("LD_LIBRARY_PATH", "")
    words = (*case.plan.container, *case.plan.binds, given)
    return any(part in word.lower() for word in words for part in ("nccl", "rccl", "aws-ofi"))


def _plugin_out_of_reach(case: Case, path: str, networks: list[str]) -> Hit | None:
    """Return a finding if the image has NCCL's network plugin, but the loader does not search the plugin's
    folder.
    """
    given = {**case.image_facts.environment, **case.plan.env}
    folder, paths = posixpath.dirname(path), given.get("LD_LIBRARY_PATH", "").split(":")
    found = case.image_facts.nccl_ofi_found
    # Facts files of earlier toolkit releases lack ``nccl_ofi_found``. Without this fact, assume that the
    # loader finds the plugin, unless the plugin is below /opt and LD_LIBRARY_PATH is set.
    if found is None:
        found = not (is_below(folder, "/opt") and "LD_LIBRARY_PATH" in given)
    if found or folder in paths or "NCCL_NET_PLUGIN" in given:
        return None
    title = f"NCCL would use TCP on {' and '.join(networks)}, because LD_LIBRARY_PATH lacks {folder}"
    fix = f"put {folder} first in LD_LIBRARY_PATH, or set NCCL_NET_PLUGIN={path}"
    return Hit(case.cite("image.nccl_ofi", "host.fabrics"), title=title, fix=fix, source=_OUT_OF_REACH)


_OUT_OF_REACH = "NVIDIA-NeMo/RL issue 1973; NVIDIA NCCL user guide, NCCL_NET_PLUGIN"


@rule(
    "nccl-interface-unrouted",
    "NCCL chooses a network interface that has no route to other nodes",
    severity="warning",
    fix="name the interface that reaches the other nodes: `--env NCCL_SOCKET_IFNAME=NAME`",
    source="NVIDIA NCCL user guide, NCCL_SOCKET_IFNAME; NVIDIA/nccl issue 1000 (bootstrap over ib0 fails)",
    facts=("host.interfaces", "image.nccl", "image.pytorch"),
    advice=True,
)
def nccl_interface_unrouted(case: Case) -> Hit | None:
    """At start, NCCL connects its ranks by TCP. NCCL prefers interfaces whose names begin with ib, and uses
    docker* and lo only if no other interface exists. If the selected interface does not reach the other
    nodes, a job on several nodes fails when NCCL connects its ranks.
    """
    if case.request.nodes == 1 or not (case.image_facts.nccl or case.image_facts.pytorch):
        return None
    case.have("host.interfaces")
    routed, given = case.host_facts.interfaces_routed, {**case.image_facts.environment, **case.plan.env}
    if not routed or "NCCL_SOCKET_IFNAME" in given:
        return None
    usable = [name for name in case.host.interfaces or () if not name.startswith(("docker", "lo"))]
    chosen = [name for name in usable if name.startswith("ib")]
    if not chosen or set(chosen) & set(routed):
        return None
    title = f"NCCL chooses {chosen[0]}, but the route to other nodes is over {', '.join(routed)}"
    return Hit(case.cite("host.interfaces"), title=title)
