"""What users posted of their jobs in public: the first finding is the cause that was found there.

Each case is cut to the lines that matter, names nobody, and has its issue above it.
"""

import pytest

from toolkit.engine.explain import explain


def told(text):
    """Return the ids of what is found, the most likely cause first."""
    return [finding.id for finding in explain(text)]


GPU_MEMORY = [
    # huggingface/accelerate 1519
    "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.00 GiB (GPU 1)",
    # NVIDIA/DeepLearningExamples 405
    "  (0) Resource exhausted: Out of memory while trying to allocate 68852648264 bytes.",
    # nextcloud/recognize 771
    "W tensorflow/core/framework/op_kernel.cc:1733] RESOURCE_EXHAUSTED: failed to allocate memory",
    "RuntimeError: CUDA error: out of memory",
]


@pytest.mark.parametrize("line", GPU_MEMORY)
def test_a_full_gpu_is_not_taken_for_a_full_node(line):
    assert told(line) == ["gpu-memory-full"]


HOST_MEMORY = [
    # hafs-community/HAFS 101, chrisknewman/tusas 149
    "slurmstepd: error: Detected 1 oom-kill event(s) in step 812.0 cgroup.",
    "srun: error: node1: tasks 1-3: Out Of Memory",
    "python3 invoked oom-killer: gfp_mask=0xcc0, order=0, oom_score_adj=0",
    "Memory cgroup out of memory: Killed process 812 (python3)",
    "ResourceExhaustedError: OOM when allocating tensor with shape[48,8] on /device:CPU:0 by allocator cpu",
    "terminate called after throwing an instance of 'std::bad_alloc'",
    "numpy._core._exceptions._ArrayMemoryError: Unable to allocate 1.2 TiB for an array",
    "bash: fork: Cannot allocate memory",
]


@pytest.mark.parametrize("line", HOST_MEMORY)
def test_a_full_node_is_known_in_the_words_of_slurm_the_kernel_and_programs(line):
    assert told(line) == ["out-of-memory"]


def test_memory_that_may_not_be_locked_is_not_missing():
    line = "ib_md.c:309  UCX  ERROR ibv_reg_mr(address=0x7f, length=8) failed: Cannot allocate memory"
    assert told(line) == ["locked-memory-limited"]


@pytest.mark.parametrize(
    ("what", "library", "id_"),
    [
        ("ImportError", "libcudart.so.10.2", "gpu-library-needed"),
        ("./a.out: error while loading shared libraries", "libcuda.so.1", "gpu-library-needed"),
        ("ImportError", "libmpi.so.40", "image-lacks-mpi"),
        ("ImportError", "libGL.so.1", "missing-library"),
    ],
)
def test_a_library_that_an_import_cannot_do_without_ends_the_program(what, library, id_):
    gone = f"{what}: {library}: cannot open shared object file: No such file or directory"
    (finding,) = explain(f"Traceback (most recent call last):\n    import torch\n{gone}")
    assert (finding.id, finding.severity) == (id_, "error")


def test_a_warning_of_openib_does_not_say_that_ucx_is_missing():
    # open-mpi/ompi 6517, 7188 and 10693: the line comes also where UCX carries the messages.
    (finding,) = explain("WARNING: There was an error initializing an OpenFabrics device.")
    assert (finding.id, finding.severity) == ("openib-ignored", "warning")
    assert "nothing is lost where UCX does" in finding.title
