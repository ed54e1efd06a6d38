"""Test that toolkit's first finding for job output in a public issue is the cause that the issue names."""

from tests.unit.tables import every_row
from toolkit.engine.logs.signature_match import explain


def told(text):
    """Return the ids of the findings, the most likely cause first."""
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


@every_row("line", GPU_MEMORY)
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


@every_row("line", HOST_MEMORY)
def test_a_full_node_is_known_in_the_words_of_slurm_the_kernel_and_programs(line):
    assert told(line) == ["out-of-memory"]


def test_memory_that_may_not_be_locked_is_not_missing():
    line = "ib_md.c:309  UCX  ERROR ibv_reg_mr(address=0x7f, length=8) failed: Cannot allocate memory"
    assert told(line) == ["locked-memory-limited"]


@every_row(
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
    # open-mpi/ompi 6517, 7188 and 10693: Open MPI also prints this line if UCX carries the messages.
    (finding,) = explain("WARNING: There was an error initializing an OpenFabrics device.")
    assert (finding.id, finding.severity) == ("openib-ignored", "warning")
    assert "change nothing, because UCX uses the card" in finding.fix


MPI = [
    # openucx/ucx 4224: the different pml is the cause of the unreachable ranks
    (
        """\
[n1:25388] [[64574,1],8] selected pml cm, but peer [[64574,1],0] on n1 selected pml ucx
MPI_INIT has failed because at least one MPI process is unreachable
""",
        ["pml-of-peers-differs", "open-mpi-unreachable"],
    ),
    # open-mpi/ompi 12475: the output lacks the line of the other rank
    (
        "[n2:8] [[4419,0],1] selected pml ob1, but peer [[4419,0],0] on n1 selected pml",
        ["pml-of-peers-differs"],
    ),
    # apptainer/singularity 5203: a PMIx server exists, although OPAL's line does not say so
    (
        """\
[n1] PMIX ERROR: PMIX TEMPORARILY UNAVAILABLE in file ptl_tcp.c at line 688
[n1] OPAL ERROR: Unreachable in file pmix2x_client.c at line 112
""",
        ["pmix-pair-fails", "image-lacks-pmi2"],
    ),
    # openpmix/openpmix 3778 and 2988
    ("[n1:12] PMIX ERROR: PMIX_ERR_FILE_OPEN_FAILURE in file pmix_shmem.c at line 91", ["tmp-hidden"]),
    (" Impossible to open the file /tmp/pmix.sched.n1 in write mode", ["tmp-hidden"]),
    # llnl/LaunchMON 35
    (
        """\
[unset]:_pmi_alps_get_apid:alps_app_lli_put_request failed
[unset]:_pmi_init:_pmi_alps_init returned -1
Fatal error in MPI_Init: Other MPI error, error stack:
""",
        ["cray-pmi"],
    ),
    # open-mpi/ompi 10601, sxs-collaboration/spectre 5935, uxlfoundation/oneDAL 3741
    ("n1.30734PSM2 can't open hfi unit: -1 (err=23)", ["omni-path"]),
    (
        """\
n1:rank0: PSM3 can't open nic unit: 0 (err=23)
Abort(1614735) on node 0 (rank 0 in comm 0): Fatal error in PMPI_Init: Unknown error class, error stack:
""",
        ["fabric-not-opened"],
    ),
    # pmodels/mpich 6924: every singleton writes this abort, so it shows nothing
    ("[unset]: write_line error; fd=-1 buf=:cmd=abort exitcode=1614479", []),
    ("PMII_singinit: execv failed: No such file or directory", ["image-lacks-pmix"]),
    # reger-men/HPL_GPU 20
    (
        """\
srun: error: n1: task 1: Segmentation fault
MPIDI_OFI_handle_cq_error(1059): OFI poll failed (ofi_events.c:1061:Message too long - OK)
""",
        ["crashed", "fabric-message-lost", "rank-failed"],
    ),
    # openucx/ucx 8746 and 2501, NOAA-GFDL/MOM6-examples 290
    (
        "[1.2] [n1:8:0] ucp_context.c:1014 UCX  WARN  transport 'ib' is not available, please",
        ["ucx-transport"],
    ),
    ("[n1:1:0:1]    ud_iface.c:781  Fatal: transport error: Endpoint timeout", ["infiniband-retries"]),
    (
        "MOM6: symbol lookup error: libmpi_mpifh.so.12: undefined symbol: mpi_fortran_weights_empty",
        ["mixed-mpi-libraries"],
    ),
    # openpmix/openpmix 556, of PMIx 2.0
    (
        """\
[n1:12] PMIX ERROR: ERROR in file dstore/pmix_esh.c at line 1723
[n1:12] PMIX ERROR: OUT-OF-RESOURCE in file dstore/pmix_esh.c at line 831
""",
        ["tmp-hidden"],
    ),
    # open-mpi/ompi 12146 and 11065
    ("[n1:8] shmem: mmap: whether or not /tmp/spmix_appdir_7_1.0/pool.n1 could be created.", ["tmp-hidden"]),
    (
        """\
A system call failed during shared memory initialization that should
not have.  It is likely that your MPI job will now either abort or
  Error:       No space left on device (errno 28)
""",
        ["open-mpi-shared-memory", "disk-full"],
    ),
    # MPICH's Hydra is not Cray's PMI
    ("hydra_pmi_proxy: pmi_wire.c:683: PMIU_cmd_output_v1: Assertion `x' failed.", ["hydra-other-release"]),
]


@every_row(("text", "ids"), MPI)
def test_what_mpi_says_first_is_before_what_follows_from_it(text, ids):
    assert told(text) == ids


LAUNCHERS = [
    # openpmix/prrte 540, 1392 and open-mpi/ompi 10153: Open MPI 5 prints PRTE, and Open MPI 4 prints ORTE
    ("An ORTE daemon has unexpectedly failed after launch and before", ["daemon-not-calling-home"]),
    ("An PRTE daemon has unexpectedly failed after launch and before", ["daemon-not-calling-home"]),
    ("PRTE has lost communication with a remote daemon.", ["daemon-not-calling-home"]),
    ("prterun was unable to reliably start one or more daemons.", ["container-launcher-fails"]),
    # horovod/horovod 527
    ("bash: /usr/local/bin/orted: No such file or directory", ["container-launcher-fails"]),
    # horovod/horovod 2117, openpmix/prrte 1493
    (
        """\
root@10.0.0.2: Permission denied (publickey,password).
ORTE was unable to reliably start one or more daemons.
""",
        ["ssh-refused", "container-launcher-fails"],
    ),
    ("ssh_exchange_identification: Connection closed by remote host", ["ssh-refused"]),
    # pmodels/mpich 1161, firemodels/fds 8508
    (
        "[mpiexec@m1] HYDU_create_process: execvp error on file hydra_pmi_proxy (No such file or directory)",
        ["container-launcher-fails"],
    ),
    (
        "[mpiexec@m1] main (mpiexec.c:1881): error setting up the boostrap proxies",
        ["container-launcher-fails"],
    ),
    # open-mpi/ompi 10071 and 11371
    (
        """\
A request was made to bind to that would result in binding more
processes than cpus on a resource:
""",
        ["open-mpi-mapping"],
    ),
    ("Your job failed to map. Either no mapper was available, or none", ["open-mpi-mapping"]),
]


@every_row(("text", "ids"), LAUNCHERS)
def test_a_launcher_that_reaches_no_node_is_known_in_the_words_of_each_mpi(text, ids):
    assert told(text) == ids


TORCH = [
    # NVIDIA/nccl 562 and 1129, without the later lines of CUDA and PyTorch
    (
        """\
n1:3778851:3779883 [4] ibvwrap.c:130 NCCL WARN Call to ibv_create_qp failed
n1:3778851:3779883 [4] NCCL INFO external/nccl_archive/src/init.cc:310 -> 2
RuntimeError: NCCL Error 2: unhandled system error
""",
        ["nccl-infiniband-setup"],
    ),
    (
        "n1:1:2 [0] NCCL WARN Call to ibv_reg_mr failed with error Cannot allocate memory",
        ["locked-memory-limited"],
    ),
    # pytorch/pytorch 85604: a rank survives the fault of the first line
    ("[W socket.cpp:401] [c10d] The server socket has failed to listen on [::]:47531 (errno: 98).", []),
    (
        "[E socket.cpp:435] [c10d] The server socket has failed to listen on any local network address.",
        ["port-taken"],
    ),
    ("OSError: [Errno 98] Address already in use", ["port-taken"]),
    # tensorflow/text 1167, edwardyehuang/CAR 1
    (
        """\
E cuda_dnn.cc:417] Loaded runtime CuDNN library: 8.0.5 but source was compiled with: 8.6.0.
W op_kernel.cc:1830] OP_REQUIRES failed at conv_ops.cc:1068 : UNIMPLEMENTED: DNN library is not found.
""",
        ["tensorflow-cudnn-mismatch", "cudnn-handle"],
    ),
    ("  (0) UNIMPLEMENTED:  DNN library is not found.", ["cudnn-handle"]),
    # microsoft/lisa 2823, nagadit/DeepFaceLab_Linux 89, rwth-i6/returnn 1486
    ("UserWarning: CUDA initialization: Error 802: system not yet initialized", ["gpu-fabric-manager"]),
    ("Internal: failed call to cuDevicePrimaryCtxRetain: CUDA_ERROR_ECC_UNCORRECTABLE", ["gpu-faulty"]),
    ("Unable to determine the device handle for GPU0000:03:00.0: Unknown Error", ["gpu-faulty"]),
    # ray-project/ray 25866
    (
        "  what():  [/tmp/horovod/common/gloo/http_store.cc:57] Wait timeout after 30 seconds for key(s): 0.",
        ["gloo-peer-lost"],
    ),
    # rikdz/GraphWriter 6, google/deepvariant 640
    ("The NVIDIA driver on your system is too old (found version 6050).", ["gpu-driver-too-old"]),
    (
        "RuntimeError: module compiled against API version 0x10 but this version of numpy is 0xf",
        ["numpy-differs"],
    ),
    # NVIDIA/nccl 1105 and 1235, NVIDIA/nccl-tests 15 and 166, of releases from 2.2 to 2.18
    ("n1:8:8 [0] include/socket.h:360 WARN Call to connect failed : Connection timed out", ["nccl-connect"]),
    (
        """\
n1:8:8 [0] include/socket.h:409 NCCL WARN Net : Connect to 10.0.0.9<54263> failed : No route to host
n2:8:8 [0] misc/socket.cc:49 NCCL WARN socketProgress: Connection closed by remote peer n1<57557>
""",
        ["nccl-connect", "nccl-remote"],
    ),
    ("n1:8:8 [0] NCCL INFO socketPollConnect: connect to 10.0.0.9<5> returned 111(Connection refused)", []),
    ("n1:8:8 [3] include/alloc.h:178 NCCL WARN Cuda failure 'out of memory'", ["gpu-memory-full"]),
    # huggingface/transformers 11658: /dev/shm is full, not a disk
    (
        "n1:8:8 [0] NCCL WARN Call to posix_fallocate failed : No space left on device",
        ["shared-memory-small"],
    ),
    # horovod/horovod 243, of 2018
    (
        "Aborted: Horovod has been shut down. This has been caused by an exception on one of the",
        ["horovod-shut-down"],
    ),
    # NVIDIA/nccl-tests 2, NVIDIA/nccl 1948
    ("Cuda failure common.cu:891 'invalid device ordinal'", ["gpu-number"]),
]


@every_row(("text", "ids"), TORCH)
def test_what_gpus_nccl_and_the_frameworks_say_names_the_cause(text, ids):
    assert told(text) == ids


def test_a_launcher_that_finds_no_plugins_knows_no_options():
    """Output of Ubuntu's Open MPI 4.1.6 after it was moved to another folder."""
    assert told('/opt/ompi/bin/orterun: Error: unknown option "-n"') == ["host-launcher-leaks"]
