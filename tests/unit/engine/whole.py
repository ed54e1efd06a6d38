"""All facts of a GPU cluster and a training image without faults. Each test changes a few facts."""

from typing import Any

import msgspec

from tests.unit.engine import examples
from toolkit.engine.case import Case
from toolkit.engine.predict import case_of
from toolkit.model.facts import HostFacts, ImageFacts
from toolkit.model.prediction import Mode, Plan, Request

SLURM = examples.with_(
    examples.SLURM,
    nodes=8,
    partitions=("gpu",),
    settings={"TmpFS": "/tmp", "SlurmdSpoolDir": "/var/spool/slurmd"},
)
RUNTIME = examples.with_(
    examples.APPTAINER,
    settings={
        "mount tmp": "yes",
        "mount home": "yes",
        "mount dev": "yes",
        "enable overlay": "yes",
        "enable underlay": "yes",
        "user bind control": "yes",
        "sessiondir max size": "64",
    },
)
LAUNCHER = examples.with_(
    examples.OPEN_MPI_5,
    pmix="5.0.7",
    prefix="/usr",
    library="/usr/lib/x86_64-linux-gnu/libmpi.so.40.40.7",
    soname="libmpi.so.40",
    interfaces=("pmix",),
    needs=("libpmix.so.2",),
    folders=("/usr/lib/x86_64-linux-gnu",),
    glibc_needed="2.38",
    plugins="/usr/lib/x86_64-linux-gnu/openmpi/lib/openmpi3",
    relocatable=False,
)
_HOST = HostFacts(
    place="cluster gpu",
    architecture="x86_64",
    kernel="6.1.0-28-amd64",
    distribution="debian 12 (bookworm)",
    glibc="2.36",
    slurm=SLURM,
    pmix="5.0.7",
    mpis=(LAUNCHER,),
    runtime=RUNTIME,
    user_namespaces=True,
    squashfuse="/usr/libexec/apptainer/bin/squashfuse_ll",
    fuse3="3.14.0",
    gpu_driver="550.54.15",
    gpus=("NVIDIA A100-SXM4-40GB",) * 4,
    mig=(),
    amd_gpus=(),
    gpu_libraries_glibc="2.17",
    cpu_level="x86-64-v3",
    cpu_vendor="AuthenticAMD",
    cpu_threads=2,
    shm=2**36,
    locked_memory=-1,
    interfaces=("eth0", "ib0"),
    infiniband=("mlx5_0", "mlx5_1"),
    link_layers={"mlx5_0": "InfiniBand", "mlx5_1": "InfiniBand"},
    fabrics=(),
    libfabric="/usr/lib/x86_64-linux-gnu/libfabric.so.1",
    ptrace_scope=0,
    xpmem=False,
    mca_params={},
    user_packages=(),
    munge=True,
    compute_nodes=("node[1-8]",),
    absent={"tmpdir": "TMPDIR is not set", "tmpdir_usable": "TMPDIR is not set"},
)
MPI = examples.with_(
    examples.OPEN_MPI_4,
    version="4.1.6",
    library="/usr/lib/x86_64-linux-gnu/libmpi.so.40.30.6",
    soname="libmpi.so.40",
    needs=("libevent_core-2.1.so.7", "libhwloc.so.15", "libpmix.so.2", "libucp.so.0", "libucs.so.0"),
    components={"pml": ("cm", "ob1", "ucx"), "mtl": ("ofi",), "btl": ("self", "tcp", "vader")},
    how={"pmix": "component ext3x"},
    prefix="/usr",
)
MPICH = examples.with_(
    examples.MPICH,
    version="4.2.1",
    library="/usr/lib/x86_64-linux-gnu/libmpich.so.12.4.1",
    interfaces=("pmi1", "pmi2"),
    soname="libmpich.so.12",
    device="ch4:ucx",
    own_shm=True,
)
_IMAGE = ImageFacts(
    mpirun="/usr/bin/mpirun",
    path="/images/train.sif",
    format="sif",
    compression="zstd",
    digest="sha256:" + 64 * "5",
    architecture="x86_64",
    distribution="ubuntu 22.04",
    glibc="2.35",
    glibc_needed="2.34",
    cpu_level="x86-64-v2",
    mpi=MPI,
    pmix="4.2.9",
    pmix_components={"psec": ("munge", "native", "none"), "gds": ("hash",), "ptl": ("client", "tool")},
    pmix_plugins=False,
    ucx="1.15.0",
    ucx_transports=("cma", "cuda", "ib", "tcp"),
    libfabric="/usr/lib/x86_64-linux-gnu/libfabric.so.1",
    libfabric_version="1.17.0",
    libfabric_providers=("shm", "tcp", "verbs"),
    verbs_providers=("mlx4", "mlx5"),
    hwloc="2.7.0",
    ssh="/usr/bin/ssh",
    python="3.11.2",
    tensorflow="2.16.2",
    tensorflow_cuda="12.3",
    tensorflow_cudnn="8.9",
    cuda="12.3.101",
    cudnn="8.9.7",
    nccl="2.19.3",
    horovod="0.28.1",
    horovod_built=("cuda", "gloo", "mpi", "nccl"),
    horovod_frameworks=("tensorflow",),
    horovod_tensorflow="2.16.2",
    mpi4py="4.0.3",
    stack={},
    absent={
        "pytorch": "no torch in the image",
        "pytorch_cuda": "no torch in the image",
        "pytorch_rocm": "no torch in the image",
        "jax": "no jax in the image ",
        "cuda_compat": "no cuda-compat in the image",
        "nccl_ofi": "libnccl-net*.so that sends through libfabric: not in the image",
        "entrypoint": "none",
    },
)


_TELLS = {
    "kernel": "uname -r: {}",
    "architecture": "uname -m: {}",
    "glibc": "glibc {}",
    "slurm.version": "sinfo --version: slurm {}",
    "slurm.mpi_types": "srun --mpi=list: {}",
    "slurm.mpi_default": "scontrol show config: MpiDefault = {}",
    "slurm.settings": "scontrol show config",
    "runtime": "{0.path} --version: {0.name} {0.version}",
    "mpis": "{0[0].launcher} --version: {0[0].implementation} {0[0].version}",
    "mpis.library": "{}: what programs load",
    "gpu_driver": "/proc/driver/nvidia/version: NVIDIA driver {}",
    "gpus": "",
    "mig": "nvidia-smi -L: {}",
    "gpu_mismatch": "nvidia-smi: Failed to initialize NVML: Driver/library version mismatch",
    "amd_gpus": "/sys/bus/pci/drivers/amdgpu, /sys/class/kfd: {}",
    "gpu_libraries_glibc": "/usr/lib/x86_64-linux-gnu/libcuda.so.1 needs GLIBC_{}",
    "infiniband": "/sys/class/infiniband: {}",
    "interfaces": "/sys/class/net: {}",
    "fabrics": "seen: {}",
    "locked_memory": "ulimit -l: {} bytes",
    "shm": "df /dev/shm: {} bytes",
    "ptrace_scope": "/proc/sys/kernel/yama/ptrace_scope: {}",
    "squashfuse": "{}",
    "fuse3": "libfuse3.so, fusermount3 -V: {}",
    "tmpdir": "TMPDIR={}",
    "tmpdir_usable": "TMPDIR can be written: {}",
    "compute_nodes": "srun: {} answered",
    "user_packages": "~/.local/lib: packages of Python {}",
    "munge": "/run/munge/munge.socket.2 is there: {}",
    "user_namespaces": "unshare -Ur true works: {}",
    "user_namespaces_limit": "user.max_user_namespaces = {}",
    "kernel_mounts": "kernel: has {}",
    "gpu_container_cli": "{}",
    "mpi.interfaces": "libmpi.so: {}",
    "mpi.lacks": "libmpi.so: not found: {}",
    "mpi.launcher": "{}",
    "mpi.built_for": "libopen-pal.so.40: looks for its plugins in {}",
    "mpirun": "mpirun on PATH is {}",
    "ssh": "ssh on PATH is {}",
    "mpi.version": "Open MPI or MPICH {}",
    "ucx": "libucp.so.0: UCX {}",
    "stack": "/opt/toolkit/stack.json",
    "mpi": "{0.library}: {0.implementation} {0.version}",
    "pmix": "PMIx {}",
    "pmix_components": "libpmix.so.2: components {}",
    "pmix_plugins": "libpmix.so.2: components in files: {}",
    "ucx_transports": "/usr/lib/x86_64-linux-gnu/ucx: {}",
    "libraries": "on the loader's path: {}",
    "libfabric": "{}",
    "libfabric_providers": "libfabric.so.1: providers {}",
    "verbs_providers": "/usr/lib/x86_64-linux-gnu/libibverbs: {}",
    "compression": "the superblock of the squashfs: {}",
    "cpu_level": "{}",
    "glibc_needed": "GLIBC_{}",
    "python": "/usr/bin/python{}",
    "cuda": "/usr/local/cuda/lib64/libcudart.so.{}",
    "cuda_compat": "/usr/local/cuda/compat/libcuda.so.{}",
    "cudnn": "libcudnn.so.{}",
    "nccl": "libnccl.so.{}",
    "nccl_ofi": "{}: the plugin sends through libfabric",
    "tensorflow": "tensorflow-{}.dist-info",
    "tensorflow_cuda": "tensorflow: build_info: CUDA {}",
    "tensorflow_cudnn": "tensorflow: build_info: cuDNN {}",
    "pytorch": "torch-{}.dist-info",
    "pytorch_cuda": "torch/version.py: CUDA {}",
    "pytorch_rocm": "torch/version.py: ROCm {}",
    "horovod": "horovod-{}.dist-info",
    "horovod_built": "horovod/tensorflow/mpi_lib.so: {}",
    "horovod_frameworks": "horovod: libraries for {}",
    "horovod_tensorflow": "horovod/metadata.json: TensorFlow {}",
}
"""Text of the evidence for each known fact, as the probe and the inspector write it."""


def told(facts: Any) -> Any:
    """Return the facts with a line of evidence for each known fact."""
    lines = {}
    for name, line in _TELLS.items():
        first, _, rest = name.partition(".")
        value = getattr(facts, first, None)
        if rest and isinstance(value, tuple):
            value = value[0] if value else None
        value = getattr(value, rest, None) if rest else value
        if value is None:
            continue
        if value == () or value == {}:
            lines[name] = f"{name.rpartition('.')[2].replace('_', ' ')}: none"
        elif name == "gpus":
            lines[name] = f"nvidia-smi: {value[0]}, {len(value)} of them"
        elif isinstance(value, tuple) and isinstance(value[0], str):
            lines[name] = line.format(" ".join(value))
        else:
            lines[name] = line.format(value)
    return msgspec.structs.replace(facts, evidence=lines)


def with_(facts: Any, **changes: Any) -> Any:
    """Return a copy with ``changes``; each changed fact has evidence and no longer counts as absent."""
    if not hasattr(facts, "absent"):
        return msgspec.structs.replace(facts, **changes)
    kept = {name: why for name, why in facts.absent.items() if name not in changes}
    return told(msgspec.structs.replace(facts, **{"absent": kept, **changes}))


HOST: HostFacts = told(_HOST)
IMAGE: ImageFacts = told(_IMAGE)


def host(**changes: Any) -> HostFacts:
    changed: HostFacts = with_(HOST, **changes)
    return changed


def image(**changes: Any) -> ImageFacts:
    changed: ImageFacts = with_(IMAGE, **changes)
    return changed


def mpi(**changes: Any) -> ImageFacts:
    return image(mpi=msgspec.structs.replace(MPI, **changes))


def runtime(**changes: Any) -> HostFacts:
    """Return the host with a changed container runtime; ``settings`` are added to the runtime's settings."""
    settings = {**RUNTIME.settings, **changes.pop("settings", {})}
    return host(runtime=msgspec.structs.replace(RUNTIME, settings=settings, **changes))


def absent(facts: Any, *names: str) -> Any:
    """Return a copy in which the facts ``names`` are known to be absent."""
    why = {**facts.absent, **{name: f"{name.replace('_', ' ')}: looked for, not there" for name in names}}
    return told(msgspec.structs.replace(facts, absent=why, **dict.fromkeys(names)))


def unread(facts: Any, *names: str) -> Any:
    """Return a copy in which the facts ``names`` could not be read."""
    why = {**facts.unknown, **dict.fromkeys(names, "no answer in time")}
    top = {name: {} if isinstance(getattr(facts, name), dict) else None for name in names if "." not in name}
    return told(msgspec.structs.replace(facts, unknown=why, **top))


_WORDS: dict[Mode, tuple[str, ...]] = {
    "srun-pmix": ("srun", "--mpi=pmix"),
    "srun-pmi2": ("srun", "--mpi=pmi2"),
    "srun-none": ("srun", "--mpi=none"),
    "gloo": ("srun", "--mpi=none"),
    "bind": ("srun", "--mpi=pmix"),
    "mpirun-host": ("mpirun",),
    "mpirun-container": ("/usr/bin/mpirun",),
    **dict.fromkeys(("torch", "jax", "tf-config"), ("srun", "--mpi=none")),
}


def case(
    on: HostFacts = HOST,
    of: ImageFacts = IMAGE,
    mode: Mode = "srun-pmix",
    *,
    nodes: int = 2,
    ranks_per_node: int = 1,
    batch: bool = True,
    allocation: bool = True,
    given: dict[str, str] | None = None,
    asked: dict[str, Any] | None = None,
    **plan: Any,
) -> Case:
    """Return a launch with a simple plan.

    ``given``: variables that the user sets. ``asked``: other fields of the request. ``plan``: changed fields
    of the plan.
    """
    shape = Request(
        nodes=nodes,
        ranks_per_node=ranks_per_node,
        batch=batch,
        allocation=allocation,
        env=given or {},
        **(asked or {}),
    )
    words: dict[str, Any] = {"launcher": _WORDS[mode], "inside": mode == "mpirun-container", **plan}
    words["env"] = {**words.get("env", {}), **shape.env}
    return case_of(on, of, shape, Plan(mode=mode, **words))
