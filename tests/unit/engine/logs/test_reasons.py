"""Test that the root line is the line with the reason, not a general line before or after it."""

from tests.unit.engine.logs.test_root import END, told
from tests.unit.tables import every_row
from toolkit.engine.logs.explanation import explain_output
from toolkit.engine.logs.joblines import Output

STEPS_BEFORE = "step 1 loss 0.41\nstep 2 loss 0.38\n"

PMIX = """\
--------------------------------------------------------------------------
The PMIx server's listener thread lost contact with the host system daemon.

  Local host: c12

This may be caused by a failure of the daemon, or by a firewall.
--------------------------------------------------------------------------
"""
DASK = """\
distributed.nanny.memory - WARNING - Worker tcp://10.0.0.3:41233 (pid=812) exceeded 95% memory budget.
Traceback (most recent call last):
  File "/home/bob/sum.py", line 31, in <module>
    print(total.compute())
distributed.scheduler.KilledWorker: Attempted to run task 3, but all those workers died while running it.
"""
HDF5 = """\
ModuleCmd_Load.c(213):ERROR:105: Unable to locate a modulefile for 'netcdf'
HDF5-DIAG: Error detected in HDF5 (1.12.2) thread 0:
  #000: H5F.c line 620 in H5Fopen(): unable to open file
    major: File accessibility
    minor: Unable to open file
  #001: H5Fsuper.c line 405 in H5F__super_read(): file signature not found
    major: File accessibility
    minor: Not an HDF5 file
"""
SBATCH = """\
sbatch: error: lua: partition is chosen automatically
sbatch: error: Batch job submission failed: Invalid qos specification
"""
NEXTFLOW = """\
[1f/0c93ab] process > ALIGN (3) [100%] 3 of 3, failed: 1
Error executing process > 'ALIGN (3)'

Caused by:
  {}

Command executed:
  bwa mem ref.fa x.fq
"""
COMMAND = "Command error:\n  bwa: unknown option --threads\n"
AMREX = """\
Segfault !!
See Backtrace.1 file for details
Abort(11) on node 1 (rank 1 in comm 480): application called MPI_Abort(comm=0x84000001, 11) - process 1
mv: cannot stat 'plt00020': No such file or directory
"""
FOAM = """\
[3] --> FOAM FATAL IO ERROR:
[3] Cannot find patchField entry for inlet
[3]
[3]     From function GeometricField<Type, PatchField, GeoMesh>::readField
[3]     in file GeometricFieldNew.C at line 154.
[3]
FOAM parallel run exiting
[3]
--------------------------------------------------------------------------
MPI_ABORT was invoked on rank 3 in communicator MPI_COMM_WORLD
with errorcode 1.
"""
NCCL = """\
c1:100:210 [0] misc/socket.cc:50 NCCL WARN socketProgress: Connection closed by remote peer c2<40312>
c1:100:210 [0] proxy.cc:1143 NCCL WARN Socket recv failed while polling for opId=0x55
"""
OUT_OF_MEMORY = "c2:300:411 [2] include/alloc.h:224 NCCL WARN Cuda failure 2 'out of memory'\n"
GASNET = """\
*** FATAL ERROR (n7:3311): in gasnetc_exchange() at gasnet_gemini.c:312: cannot register a segment
*** WARNING (n7:3311): backtrace is not available
srun: error: n7: task 2: Aborted (core dumped)
"""
SOLVER = """\
[2]PETSC ERROR: ------------------------------------------------------------------------
[2]PETSC ERROR: Caught signal number 8 FPE: Floating Point Exception
[2]PETSC ERROR: ---------------------  Stack Frames ------------------------------------
"""
PLUGIN = """\
!! ERROR - setup of queue plugin
!! ERROR - command `join-cluster -y` failed with status 2:
!! ERROR - reading join.conf
!! ERROR - cannot resolve host "n4"
"""
PYXIS = """\
slurmstepd: error: pyxis: child 77 failed with error code: 1
slurmstepd: error: pyxis: failed to import docker image
slurmstepd: error: pyxis: printing enroot log file:
"""
APK = """\
fetch https://mirror.example/alpine/v3.20/main/x86_64/APKINDEX.tar.gz
WARNING: fetching https://mirror.example/alpine/v3.20/main: temporary error (try again later)
ERROR: unable to select packages:
  git (no such package):
    required by: world[git]
"""
MPICH = """\
Fatal error in MPI_Init: Other MPI error, error stack:
MPIR_Init_thread(392)...:
MPID_Init(139)..........: channel initialization failed
MPIDI_CH3_Init(38)......: the channel sock is not available
"""
RAY = """\
WARNING worker.py:2037 -- The node n3 has been marked dead because the detector got no answer.
(2) raylet has lagging heartbeats due to slow network or busy workload.
"""
LAST_ERROR = """\
[job|2]:ncclSystemError: System call failed.
[job|2]:Last error:
[job|2]:ncclSocketInit: the family 3 is invalid
"""
PTXAS = """\
triton.runtime.errors.PTXASError: PTXAS error: Internal Triton PTX codegen error
`ptxas` stderr:
ptxas fatal   : Value 'sm_121a' is not defined for option 'gpu-name'
"""
LABELS = """\
[train][worker-0]     raise URLError(err)
[train][worker-0] urllib.error.URLError: <urlopen error [Errno -3] no answer>
"""


@every_row(
    ("log", "root", "class_"),
    [
        (PMIX, "The PMIx server's listener thread", "pmi"),
        (DASK, "exceeded 95% memory budget", "out-of-memory"),
        (HDF5, "file signature not found", "file-system-or-quota"),
        (SBATCH, "Invalid qos specification", "scheduler-refusal"),
        (NEXTFLOW.format("Process exceeded running time limit (12h)"), "time limit (12h)", "time-limit"),
        (NEXTFLOW.format("Not a valid path value: x"), "Not a valid path value: x", "unknown-error"),
        (
            NEXTFLOW.format("Process `A` terminated with an error exit status (2)") + COMMAND,
            "--threads",
            "user-configuration",
        ),
        (AMREX, "Segfault !!", "signal"),
        (FOAM, "Cannot find patchField entry", "unknown-error"),
        (NCCL, "Connection closed by remote peer", "nccl-or-rccl"),
        (NCCL + OUT_OF_MEMORY, "'out of memory'", "out-of-memory"),
        (GASNET, "cannot register a segment", "unknown-error"),
        (LABELS, "[worker-0] urllib.error.URLError", "network-or-dns"),
        ("lmp: rank 3 crashed with SIGSEGV\n", "SIGSEGV", "signal"),
        ("node7: process 1423 terminated by signal 11\n", "signal 11", "signal"),
        (
            "- Exiting: Called CmiAbort -\nReason: OFI domain failure\n",
            "OFI domain failure",
            "ucx-or-libfabric",
        ),
        (HDF5.replace("thread 0:", "thread 0:\n"), "file signature not found", "file-system-or-quota"),
        (SOLVER, "Caught signal number 8", "signal"),
        ("Could not queue run 7:\n  qsub: no default queue\n", "no default queue", "scheduler-refusal"),
        (
            "the setup failed. The HIP error was:\nhipErrorNoBinaryForGpu\n",
            "hipErrorNoBinaryForGpu",
            "cuda-or-hip",
        ),
        (PLUGIN, "cannot resolve host", "network-or-dns"),
        (PYXIS, "failed to import docker image", "container-runtime"),
        (APK, "temporary error", "network-or-dns"),
        (APK.split("\n", 2)[2], "unable to select packages", "unknown-error"),
        (MPICH, "MPIDI_CH3_Init(38)......: the channel sock is not available", "mpi"),
        (RAY, "has been marked dead", "ray"),
        (LAST_ERROR, "ncclSocketInit", "nccl-or-rccl"),
        (PTXAS, "'sm_121a' is not defined", "cuda-or-hip"),
    ],
)
def test_the_line_with_the_reason_is_the_root_line(log, root, class_):
    found = told(log)
    assert (root in found[0], found[1]) == (True, class_), found


def test_a_level_of_an_incomplete_error_stack_is_not_the_root_line():
    lines = HDF5.splitlines()[1:6]
    assert "#000: " in told("\n".join(lines))[0]


RETRIED = "ERROR: could not connect to ftp.example.org: Connection timed out, retrying in {} s\n"


@every_row("end", ["", END], ids=["excerpt", "job"])
def test_a_failure_that_is_retried_until_the_end_is_the_root_line(end):
    log = "step 1\n" + RETRIED.format(10) + RETRIED.format(20) + end
    assert told(log)[:2] == (RETRIED.format(10).strip(), "network-or-dns")


def test_a_failure_that_a_retry_mends_is_not_the_root_line():
    assert told(RETRIED.format(10) + "fetched 3 files\n") == ("", "", "")


@every_row(
    "code",
    [
        "  fprintf(stderr, \"read failed\\n\"); exit('x');",
        'log.warning("lookup failed for %s", name)',
        "_id',SimIDs(s),'status','failed'); end",
    ],
)
def test_a_line_of_code_with_a_word_of_failure_is_not_the_root_line(code):
    assert told(f"loading\n{code}\n") == ("", "", "")
    assert told(f"connect('10.0.0.1'): refused (111)\n{code}\n")[0] == "connect('10.0.0.1'): refused (111)"


@every_row(
    "line",
    [
        "munmap_chunk(): invalid pointer",
        "malloc(): unaligned tcache chunk detected",
        "*** bit out of range 0 - FD_SETSIZE on fd_set ***: terminated",
        "*** stack smashing detected ***: ./solver terminated",
    ],
)
def test_the_message_of_the_c_library_before_an_abort_is_the_root_line(line):
    end = "srun: error: node1: task 1: Aborted (core dumped)\n"
    assert told(f"step 1\n{line}\n{end}") == (line, "signal", "1")


@every_row(
    ("line", "class_"),
    [
        (
            "ImportError: /tmp/x.so: failed to map segment from shared object: Operation not permitted",
            "loader",
        ),
        ("./a: error while loading shared libraries: libx.so: cannot map zero-fill pages", "loader"),
        ("Error: quay.io/lab/sim:3: image not known", "container-runtime"),
        ('ctr: image "docker.io/lab/sim:3": not found', "container-runtime"),
    ],
)
def test_the_user_can_correct_a_limit_or_a_missing_image(line, class_):
    found = explain_output(Output(f"{line}\n"))
    assert found.root is not None and found.fault is not None
    assert (found.root.text, found.fault.id, found.retry) == (line, class_, "user")


def test_the_reason_of_the_c_runtime_is_shown_and_not_the_abort_after_it():
    log = "[rank0]:terminate called without an active exception\n[rank0]:Fatal Python error: Aborted\n"
    assert told(STEPS_BEFORE + log)[0].endswith("terminate called without an active exception")


def test_the_message_of_a_tensorflow_graph_is_shown_and_not_the_place_of_its_node():
    message = "Operands differ: one rank sent 4 rows, and another rank sent 5 rows."
    log = (
        'Traceback (most recent call last):\n  File "train.py", line 9, in <module>\n    step()\n'
        "tensorflow.python.framework.errors_impl.InvalidArgumentError: Graph execution error:\n\n"
        'Detected at node sum_1 defined at (most recent call last):\n  File "train.py", line 5, in step\n\n'
        f"{message}\n\t [[{{{{node sum_1}}}}]] [Op:__inference_step_26]\n"
    )
    assert told(STEPS_BEFORE + log)[:2] == (message, "python-exception")
