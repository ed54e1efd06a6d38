"""Test messages whose cause is easy to miss: help boxes, error stacks, code, advice, failed build steps."""

from tests.unit.engine.logs.test_root import END, told
from tests.unit.tables import every_row
from toolkit.engine.logs.explanation import explain_output
from toolkit.engine.logs.joblines import Output
from toolkit.engine.logs.line_class import classify
from toolkit.knowledge import signatures

DASHES = "-" * 74

INIT = """\
It looks like {name} failed for some reason; your parallel process is
likely to abort.  There are many reasons that a parallel process can
fail during {name}; some of which are due to configuration or environment
problems.  This failure appears to be an internal failure; here's some
additional information (which may only be relevant to an Open MPI
developer):

  {part}
  --> Returned value {code}
"""
COMPONENT = """\
A requested component was not found, or was unable to be opened.  This
means that this component is either not installed or is unable to be
used on your system.

Host:      k4
Framework: {}
Component: x1
"""
PYTABLES = """\
{}HDF5 error back trace

  File "H5F.c", line 620, in H5Fopen
    unable to open file
  File "H5Fsuper.c", line 405, in H5F__super_read
    truncated file: eof = 96, stored_eof = 2048

End of HDF5 error back trace

Unable to open/create file 'obs.h5'
"""


@every_row(
    ("name", "part", "class_"),
    [
        ("MPI_INIT", "PML add procs failed", "mpi"),
        ("orte_init", "orte_ess_init failed", "mpi"),
        ("SHMEM_INIT", "SPML ucx could not be selected", "mpi"),
        ("pmix_init", "pmix_ptl_base_open failed", "pmi"),
    ],
)
@every_row("rule", ["", DASHES + "\n"], ids=["bare", "dashes"])
def test_the_failed_part_of_a_library_is_the_root_line(name, part, class_, rule):
    log = rule + INIT.format(name=name, part=part, code="Error (-1)") + rule
    assert told(log)[:2] == (f"{part} --> Returned value Error (-1)", class_)


def test_a_message_without_the_failed_part_keeps_its_first_sentence():
    text = "".join(INIT.format(name="MPI_INIT", part="", code="").splitlines(keepends=True)[:6])
    found = told(f"{DASHES}\n{text}{DASHES}\n")
    assert found[0].startswith("It looks like MPI_INIT failed"), found


@every_row(("framework", "class_"), [("psec", "pmi"), ("gds", "pmi"), ("btl", "mpi"), ("pml", "mpi")])
@every_row("rule", ["", DASHES + "\n"], ids=["bare", "dashes"])
def test_the_framework_of_a_missing_component_shows_whether_pmix_lacks_it(framework, class_, rule):
    root, found, _ = told(rule + COMPONENT.format(framework) + rule)
    assert (root.startswith("A requested component was not found"), found) == (True, class_)


def test_the_pmi_that_open_mpi_misses_is_not_an_error_of_mpich():
    known = next(one for one in signatures() if one.id == "open-mpi-pmi-init")
    found = explain_output(Output(f"{DASHES}\n{known.sample}\n{DASHES}\n"))
    assert [one.title for one in found.findings if one.role == "cause"] == [known.title]


@every_row("start", ["", "tables.exceptions.HDF5ExtError: ", "the reader failed: "])
def test_the_last_call_of_an_error_stack_of_pytables_is_the_root_line(start):
    log = PYTABLES.format(start)
    reason = "truncated file: eof = 96, stored_eof = 2048"
    assert told(log)[:2] == (reason, "file-system-or-quota")
    head = 'Traceback (most recent call last):\n  File "/home/eve/read.py", line 4, in <module>\n    load()\n'
    assert told(head + PYTABLES.format("tables.exceptions.HDF5ExtError: "))[0] == reason
    cut = log.partition("End of")[0]
    assert told(cut)[0] == f"{start}HDF5 error back trace"


HDF5_2 = """\
#0 H5F.c:827 (H5Fopen): unable to synchronously open file
  class: HDF5
  major: File accessibility
  minor: Unable to open file
#1 src/H5FD.c:787 (H5FD_open): cannot read the signature
  class: HDF5
  major: Virtual File Layer
  minor: Unable to open file
"""


def test_the_last_level_of_an_error_stack_of_hdf5_2_is_the_root_line():
    assert told(f"step 1\n{HDF5_2}")[:2] == (
        "#1 src/H5FD.c:787 (H5FD_open): cannot read the signature",
        "file-system-or-quota",
    )


FRAMES = """\
{0}  File "/home/eve/run.py", line 12, in main
{0}    failed = check_errors(results, "error: cannot open the mesh")
{0}  File "/home/eve/run.py", line 44, in check_errors
{0}    raise KeyError(name) if abort else failed
"""


@every_row("label", ["n4: ", "[node-04] ", "{n4} ", "job-3 | ", "(trial 7) ", ""])
def test_a_line_of_code_below_a_frame_is_not_the_root_line(label):
    log = FRAMES.format(label)
    assert told(f"{log}{label}KeyError: 'density'\n")[:2] == (
        f"{label}KeyError: 'density'".strip(),
        "python-exception",
    )


@every_row("label", ["n4: ", "[node-04] "])
def test_lines_of_other_nodes_between_a_frame_and_its_exception_change_nothing(label):
    log = FRAMES.format(label) + "m9: step 3\n"
    assert told(f"{log}{label}pkg.grid.ShapeError: 3 layers\n")[0] == f"{label}pkg.grid.ShapeError: 3 layers"


def test_an_exception_below_no_frame_keeps_its_label_in_the_text():
    assert told("grid: ShapeError: cannot use 3 layers\n")[0] == "grid: ShapeError: cannot use 3 layers"


@every_row(
    ("file", "class_"),
    [
        ("/home/eve/run.py", "python-exception"),
        ("/opt/lib/python3.11/site-packages/acme/run.py", "python-exception"),
        ("/opt/lib/python3.11/site-packages/h5py/_hl/files.py", "file-system-or-quota"),
        ("/opt/lib/python3.11/site-packages/torch/distributed/rendezvous.py", "rendezvous"),
    ],
)
@every_row("code", ["", "    fid = make(name)\n"])
@every_row("end", ["", END], ids=["excerpt", "job"])
def test_the_last_frame_of_a_traceback_without_its_exception_is_the_root_line(file, class_, code, end):
    frame = f'File "{file}", line 9, in make'
    log = f'step 1\n  File "/home/eve/run.py", line 3, in main\n    make_all()\n  {frame}\n{code}'
    assert told(log + end)[:2] == (frame, class_)


def test_a_frame_that_other_output_follows_reports_no_failure():
    assert told('  File "/home/eve/run.py", line 3, in main\n    make_all()\nstep 2\nstep 3\n') == (
        "",
        "",
        "",
    )


@every_row(
    "line",
    [
        "If the exchange is only slow, you can raise the limit (SOLVER_TIMEOUT) or ignore the error.",
        "the failed exchange is only slow, you can either raise the timeout, or turn off the check",
        "turn off the check for errors. If neither helps, please file an issue about the timeout.",
    ],
)
def test_a_sentence_of_advice_is_not_the_root_line(line):
    error = "Error: the exchange on block 7 failed\n"
    assert classify(line) is None
    assert told(f"{line}\n{error}")[0] == error.strip()
    assert told(f"{error}{line}\n")[0] == error.strip()


@every_row(
    "line",
    [
        "error: cannot open the mesh; you can either copy the mesh, or set MESH",
        "Error: the exchange failed. If this happens again, please file an issue.",
        "internal error in the exchange; if this happens again, please open an issue",
        "sim: the mesh is invalid, you can either copy it or build it",
    ],
)
def test_an_error_with_advice_is_the_root_line(line):
    assert told(f"step 1\n{line}\n")[0] == line


SUMMARIES = [
    "FATAL:   While performing build: while running engine: exit status 1",
    "FATAL:   While performing build: conveyor failed to get: while bootstrapping: exit status 4",
    'error: building at STEP "RUN ./make.sh": while running runtime: exit status 2',
    "error: build failed: RUN command exited with 1",
    "error building image: error building stage: waiting for process to exit: exit status 1",
    "The command '/bin/sh -c ./make.sh' returned a non-zero code: 2",
]


@every_row("summary", SUMMARIES)
@every_row(
    "error",
    ["Error: no package matches foo", "make.sh: cannot find the header of foo", "Valid key not found"],
)
def test_the_error_before_the_report_of_a_failed_build_step_is_the_root_line(summary, error):
    assert told(f"INFO: step 2\n{error}\n{summary}\n")[:2] == (error, "build")


@every_row("summary", SUMMARIES)
def test_the_report_of_a_failed_build_step_is_the_root_line_of_a_silent_step(summary):
    assert told(f"INFO: step 2\n{summary}\n")[:2] == (summary, "build")


@every_row(
    ("line", "class_"),
    [
        ("RuntimeError: world_size (6) must be divisible by 4", "user-configuration"),
        (
            "ValueError: hidden size 100 is not divisible by tensor_model_parallel_size 8",
            "user-configuration",
        ),
        ("AssertionError: num_gpus (3) is not a multiple of pp_size (2)", "user-configuration"),
        ("ValueError: batch_size 30 cannot fit: 30 is not equal to 4 * world_size 8", "user-configuration"),
        ("AssertionError: tp_size * pp_size must be equal to world_size", "user-configuration"),
        ("RuntimeError: the mesh is larger than the world size: 8 ranks", "user-configuration"),
        ("ValueError: checkpoint has world size 16, but this job has 8", "user-configuration"),
        ("RuntimeError: world size 4 when the state was saved, not 2", "user-configuration"),
        ("RuntimeError: timed out waiting for world_size=4 ranks, 3 joined", "rendezvous"),
        (
            "RuntimeError: The detected CUDA version (12.4) mismatches that with which it was compiled",
            "build",
        ),
        ("ToolError: unable to compile cuda/cpp extensions, nvcc is 12.6", "build"),
        ("XlaRuntimeError: INTERNAL: DNN library initialization failed.", "cuda-or-hip"),
        ("InternalError: StreamExecutor without BLAS support", "cuda-or-hip"),
        ("sim: cudaErrorDevicesUnavailable in setup", "cuda-or-hip"),
        ("sim: could not write state.tmp: input/output error", "file-system-or-quota"),
        ("OSError: [Errno 121] Remote I/O error: '/p/ann/x'", "file-system-or-quota"),
        ("Could not open index /scratch/k/cache/index.db", "file-system-or-quota"),
        ("the cache needs a file system that supports file locks, error 3", "file-system-or-quota"),
        ("worker 3 failed: out of shared memory", "out-of-memory"),
        ("watchdog got stuck for 90 seconds, still monitoring", "nccl-or-rccl"),
        ("slurmstepd: error: execve(): /spool/job00071/slurm_script: No such file", "scheduler-start"),
        ("ModuleNotFoundError: No module named 'mpi4py'", "package"),
        ("RuntimeError: received 2 items of ancdata", "system-limit"),
        ('InvalidArgumentError: Task 3 was not defined in job "ps"', "user-configuration"),
        ("ValueError: the DeepSpeed config has a conflict: zero_stage 3", "user-configuration"),
        ("ValueError: 2 fields mismatch with the Accelerate config", "user-configuration"),
        ("ch-run[71]: --bind: can't open: -w: No such file or directory", "container-runtime"),
        ("reading manifest: toomanyrequests: wait an hour", "container-runtime"),
        ("n1:5:9 [0] misc/shmutils.cc:99 NCCL WARN Cuda failure 'not supported'", "nccl-or-rccl"),
        ("n1.7: opening the shared memory object in shm_open: No such file", "ucx-or-libfabric"),
        ("Outdated cuFFT installation found.", "cuda-or-hip"),
        ("scipy 1.2 is older than required 1.9", "package"),
        ("The node n3 has been marked dead because the detector got no answer", "ray"),
        ("PMI2 init failed: 14", "pmi"),
        ("ray.exceptions.RaySystemError: System error: Broken pipe", "ray"),
        ("Proxy Call to rank 6 failed (Setup)", "nccl-or-rccl"),
        ("srun: fatal: Can not execute vasp", "program-start"),
        ("[3] Abort: Got FATAL event 2 at line 90", "ucx-or-libfabric"),
        ("sim: mlock failed for 64 pages: Cannot allocate memory", "ucx-or-libfabric"),
        ("Unable to run job: warning: no suitable queues", "scheduler-refusal"),
        ("RuntimeError: Unknown backend gpu", "gpu-handover"),
        ("xla_bridge.py:9] No GPU/TPU found, falling back to CPU.", "gpu-handover"),
        ("RuntimeError: Expected world size 8 but got 4", "user-configuration"),
        ("Fortran runtime error: Cannot match namelist object name nx", "user-configuration"),
        ("n1: Failed to modify UD QP to INIT on mlx5_0: Operation not permitted", "ucx-or-libfabric"),
        ("ch-run[8]: error: can't execve(2): sim: No such file or directory", "program-start"),
        ("CondaSSLError: OpenSSL appears to be unavailable on this machine.", "loader"),
        ("==> Error: concretization failed for the following reasons:", "build"),
        ("=   EXIT CODE: 9", "signal"),
        ("[n1:7] opal_os_dirpath_create: Error: Unable to create the sub-directory", "file-system-or-quota"),
        (
            "RuntimeError: unable to open shared memory object </torch_1>: Too many open files (24)",
            "system-limit",
        ),
        ("ray.exceptions.OutOfDiskError: Local disk is full", "file-system-or-quota"),
        ("ERROR: License checkout failed: -5 (No such feature exists)", "user-configuration"),
        ("ImportError: the package flash_attn seems to be not installed.", "package"),
        (
            "FATAL:   container creation failed: prelayer returns error: mkdir /a: file exists",
            "container-runtime",
        ),
        ("[ABORT] A required keyword BASIS_SET was not found in section KIND", "user-configuration"),
        ("batch response: This repository is over its data quota.", "network-or-dns"),
        (
            "libfabric:12:17::cxi:core:cxip_ep_enable():12<warn> n1: Failed to allocate CXI resources: -28",
            "ucx-or-libfabric",
        ),
    ],
)
def test_the_class_of_kinds_of_messages(line, class_):
    assert told(f"step 1\n{line}\n")[:2] == (line, class_)


@every_row(
    "line",
    [
        "WARNING: global batch size must be divisible by world size for best speed",
        "[2026-11-01 10:00:00,160] [WARNING] [runner.py:117:fetch_hostfile] Unable to find hostfile",
        "fatal: not a git repository (or any of the parent directories): .git",
        "Loaded checkpoint ck.pt of world_size 8, missing keys: []",
        "INFO: Lustre file system supports flock",
        "  rdzv_configs     : {'timeout': 900}",
        "WARNING: memlock limit too low",
        "UserWarning: CUDA version (12.1) has a minor version mismatch with the version of the compiler",
    ],
)
def test_a_healthy_job_may_write_similar_lines(line):
    steps = "".join(f"step {number} loss 0.{number}\n" for number in range(1, 4))
    assert told(f"{steps}{line}\n{steps}") == ("", "", "")
