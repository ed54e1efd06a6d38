"""Test that each signature finds some line only because of the first words of its pattern."""

import re

from tests.unit.tables import every_row
from toolkit import knowledge
from toolkit.engine.logs.signature_match import explain

LINES = {
    "slurm-pmix-library": "incorrect PMIx library version loaded",
    "slurm-step-waits": "step creation temporarily disabled, retrying",
    "slurm-reservation": "Access denied to requested reservation",
    "slurm-job-gone": "failed: Job/step already completing or completed",
    "slurm-job-script": "This does not look like a batch script",
    "slurm-configuration": "error while loading shared libraries: libslurm.so",
    "slurm-authentication": "Protocol authentication error",
    "slurm-command-missing": "srun: not found",
    "no-container-runtime": "singularity: command not found",
    "no-user-namespaces": "Failed to create user namespace",
    "fuse-missing": "fuse: device not found",
    "overlay-damaged": "/proc/self/fd/1: Bad magic number in super-block",
    "image-not-packed": "while creating squashfs: command failed: exit status 1",
    "runtime-cache": "failed to create an image cache handle",
    "home-not-in-image": "Home directory does not exist within the container",
    "bind-denied": "There was an error binding the path /data: Permission denied",
    "command-not-in-image": "FATAL: stat /app: no such file or directory",
    "fakeroot-ids": "no mapping entry found in /etc/subuid",
    "gpu-library-needed": "NCCL WARN Failed to find CUDA library",
    "processor-too-old": "Illegal instruction",
    "mpich-singletons": "PMII_singinit: execv failed",
    "mpich-pmi-init": "PMI_Init failed",
    "cray-pmi": "_pmi_init: failed",
    "mpi-expects-gpu": "yaksuri_cuda_init_hook",
    "inner-mpirun-no-daemon": "ORTE_ERROR_LOG: Not found in file plm_slurm_module.c",
    "open-mpi-mapping": "Your job failed to map. Either refer",
    "component-path-leaks": 'mpirun: Error: unknown option "-n"',
    "pmix-init-failed": "PMIx_Init failed for the following reason",
    "pmix-server-too-old": "attempted to connect to a PMIx server that is running a",
    "session-folder": "Impossible to open the file /tmp/pmix in write mode",
    "single-copy-gpu": "process_vm_readv returned -1: Bad address",
    "no-fabric-provider": "OFI addrinfo() failed",
    "verbs-driver": "libibverbs: Warning: couldn't load driver",
    "openib-ignored": "error obtaining device attributes for mlx5_0 errno says",
    "omni-path": "PSM2 can't open hfi unit",
    "cuda-driver-mismatch": "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
    "cuda-compat-refused": "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE",
    "cuda-driver-too-old": "NVIDIA driver on your system is too old",
    "cuda-newer-ptx": "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
    "rocblas-kernels": "rocBLAS error: Cannot read",
    "gpu-fabric-manager": "cudaErrorSystemNotReady",
    "gpu-memory-full": "CUDA_ERROR_OUT_OF_MEMORY",
    "cudnn-handle": "DNN library is not found",
    "ptxas-old": "You are using ptxas 11.8, but XLA requires",
    "jax-cuda": "CUDA backend failed to initialize",
    "miopen-cache": "Internal error while accessing SQLite database",
    "xla-libdevice": "libdevice not found",
    "nccl-shared-memory": "Error while creating shared memory segment",
    "nccl-cuda": "ncclUnhandledCudaError",
    "nccl-system": "ncclSystemError",
    "horovod-without-controller": "Neither MPI nor Gloo support has been built",
    "collectives-differ": "Received data size doesn't match expected size",
    "port-taken": "failed to listen on any local network address",
    "hwloc-conflict": "opal_hwloc201: SIGSEGV",
    "node-failed": "CANCELLED AT 2026-11-21T05:00:00 DUE TO NODE FAILURE",
    "out-of-memory": "Detected 1 oom",
    "file-damaged": "tarfile.ReadError: unexpected end",
    "mpi-io-lock": "File locking failed in ADIOI_Set_lock",
    "crashed": "Segmentation fault",
    "nccl-remote": "ncclRemoteError",
    "rank-failed": "DUE TO TASK FAILURE",
}
"""Lines that contain the first words of a signature's pattern, by the signature's id. The samples of the
other signatures contain these words.
"""
AFTER_OTHERS = {
    "cuda-no-device",
    "cudnn-call",
    "horovod-other-tensorflow",
    "locked-memory",
    "loop-devices",
    "missing-library",
    "missing-mpi-library",
    "read-only-folder",
    "slurm-controller",
    "symbol-missing",
    "tensorflow-cluster",
}
"""Signatures for which no line depends on the first words.

These words only exclude lines, or an earlier signature finds the line.
"""
SIGNATURES = {signature.id: signature for signature in knowledge.signatures()}


def needs_first_words(pattern: str, lines: str) -> bool:
    """Return whether no line matches if ``zzzz`` replaces the first four letters of the pattern."""
    other = re.sub(r"[A-Za-z]{4}", "zzzz", pattern, count=1)
    try:
        return not any(re.search(other, line) for line in lines.splitlines())
    except re.error:  # `zzzz` made an invalid escape
        return True


@every_row("name", LINES)
def test_a_line_with_the_first_words_is_explained_by_the_signature(name: str):
    assert [finding.title for finding in explain(f"{LINES[name]}\n")] == [SIGNATURES[name].title]


def test_a_line_shows_the_first_words_of_each_pattern():
    hidden = {
        signature.id
        for signature in SIGNATURES.values()
        if not any(
            needs_first_words(signature.pattern, lines)
            for lines in (signature.sample, LINES.get(signature.id, signature.sample))
        )
    }
    assert hidden == AFTER_OTHERS
