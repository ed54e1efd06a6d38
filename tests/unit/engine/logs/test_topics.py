"""Test how toolkit finds the class of a fault whose line matches no row of ``faultlines.toml``."""

from tests.unit.engine.logs.test_root import told
from tests.unit.tables import every_row
from toolkit.engine.logs.topics import class_of_exception, class_of_text

STEPS_BEFORE = "step 1 loss 0.41\nstep 2 loss 0.38\n"

FRAMES = """\
Traceback (most recent call last):
  File "/home/ann/train.py", line 9, in <module>
    main()
  File "{file}", line 71, in call
    raise error
{error}
"""


@every_row(
    ("error", "class_"),
    [
        ("docker.errors.DockerException: no answer", "container-runtime"),
        ("NCCLSetupFailure: rank 3", "nccl-or-rccl"),
        ("ProxyMisconfigured: none", "network-or-dns"),
        ("CondaEnvironmentBroken: torch", "build"),
        ("zarr.storage.ChunkMissing: 0.0", "file-system-or-quota"),
        ("cupy.linalg.SolverFault: 7", "cuda-or-hip"),
        ("hydra.errors.OverrideFault: lr", "user-configuration"),
        ("torch._dynamo.exc.BackendCompilerFault: inductor", None),
        ("ValueError: no GPU was found", None),
        ("mypkg.errors.ShardMissing: 3", None),
        ("RuntimeError: NCCL gave up on rank 3", "nccl-or-rccl"),
        ("RuntimeError: ProcessGroupMPI needs ranks", "mpi"),
        ("RuntimeError: 'NCCL' is no data set", None),
        ("no exception", None),
    ],
)
def test_the_module_and_the_name_of_an_exception_show_its_class(error, class_):
    assert class_of_exception(error) == class_


@every_row(
    ("text", "class_"),
    [
        ("mpiexec lost the parameter 'nvidia'", "mpi"),
        ('cannot define "sbatch" twice', None),
        ("cannot read 'libcudart.so.12'", "loader"),
        ("cannot read '/lustre/ann/x'", "file-system-or-quota"),
    ],
)
def test_quoted_names_are_no_subject_of_a_line_but_libraries_and_paths_are(text, class_):
    assert class_of_text(text) == class_


@every_row(
    ("file", "error", "class_"),
    [
        (
            "/env/lib/python3.11/site-packages/filelock/_unix.py",
            "OSError: [Errno 5] Input/output error",
            "file-system-or-quota",
        ),
        ("/env/lib/python3.11/site-packages/triton/runtime/jit.py", "ValueError: bad pointer", "cuda-or-hip"),
        ("/env/lib/python3.11/site-packages/ray/_private/worker.py", "ValueError: no head", "ray"),
    ],
)
def test_the_files_of_a_traceback_show_the_class(file, error, class_):
    assert told(FRAMES.format(file=file, error=error))[:2] == (error, class_)


@every_row(
    ("log", "root", "class_"),
    [
        (
            "Fatal error:\nThe cut-off is longer than half of the box\n",
            "Fatal error: The cut-off is longer than half of the box",
            "unknown-error",
        ),
        (
            "--> FOAM FATAL IO ERROR: (openfoam-2312)\ncannot find file /case/0/U\n",
            "--> FOAM FATAL IO ERROR: (openfoam-2312) cannot find file /case/0/U",
            "file-system-or-quota",
        ),
        (
            "Error in loadNamespace(x) : \n  there is no package called 'snow'\n",
            "Error in loadNamespace(x) : there is no package called 'snow'",
            "package",
        ),
        ("ERROR:\n----------\n", "ERROR:", "unknown-error"),
        ("ERROR:\n----------\nthe grid is empty\n", "ERROR: the grid is empty", "unknown-error"),
        (
            "prterun noticed that process rank 1 with PID 7 on node n1 exited on\nsignal 7 (Bus error).\n",
            "prterun noticed that process rank 1 with PID 7 on node n1 exited on signal 7 (Bus error).",
            "signal",
        ),
    ],
)
def test_a_line_that_only_introduces_an_error_is_joined_to_its_message(log, root, class_):
    assert told(log)[:2] == (root, class_)


@every_row(
    ("error", "class_"),
    [
        ("TimeoutError: the raylet gave no answer", "ray"),
        ("TimeoutError: nothing came", "network-or-dns"),
        ("requests.exceptions.ConnectionError: none", "network-or-dns"),
        ("TimeoutError: mpiexec did not answer", "mpi"),
    ],
)
def test_the_message_decides_what_is_unreachable(error, class_):
    assert told(FRAMES.format(file="/env/lib/python3.11/site-packages/mypkg/io.py", error=error))[1] == class_


def test_errors_after_general_words_show_the_class_of_the_report():
    near = "Error: the step failed\nerror: zypper returned 1\n"
    assert told(near)[:2] == ("Error: the step failed", "build")
    apart = "Error: the step failed\n" + "note\n" * 9 + "error: zypper returned 1\n"
    assert told(apart)[1] == "unknown-error"


@every_row(
    ("line", "class_"),
    [
        ("TERM_RUNLIMIT: job killed after reaching LSF run time limit.", "time-limit"),
        ("=>> PBS: job killed: vmem 9kb exceeded limit 8kb", "out-of-memory"),
        ("1.2s: job.exception type=alloc severity=0 unsatisfiable constraint", "scheduler-refusal"),
        (
            "torch.multiprocessing.spawn.ProcessExitedException: process 3 terminated with signal SIGBUS",
            "signal",
        ),
        ("ERROR: variable x was not read (src/GPU/pair_gpu.cpp:12)", "unknown-error"),
        ("bash: line 3: ./solver.x: Permission denied", "program-start"),
        ("bash: line 3: /data/log.txt: Permission denied", "file-system-or-quota"),
        ("forrtl: severe (38): error during write, unit 7, file /scratch/out", "file-system-or-quota"),
        ("forrtl: severe (41): insufficient virtual memory", "out-of-memory"),
        ("Error: cannot open the file 'x.rds'", "file-system-or-quota"),
        ("Error: cannot mount volume data", "container-runtime"),
        ("2 validation errors for Config", "user-configuration"),
        ("nvidia-container-cli: mount error: cuda error: unknown error", "gpu-handover"),
        ("I0811 03:41:18.359137 140270426367808 bridge.py:214] Unable to open libtpu.so: cannot load", ""),
        ("A license for Comp-FL is not available now (-5,357).", "network-or-dns"),
        ("ERROR: Unknown pair style foo/bar (src/force.cpp:279)", "user-configuration"),
    ],
)
def test_lines_of_other_programs_have_their_class(line, class_):
    assert told(line)[1] == class_


def test_the_rank_of_open_mpi_is_the_last_number_of_the_process_name():
    log = "rank 3 stops: bad input\nmpirun detected that one or more processes exited with non-zero status.\n"
    assert told(f"{log}  Process name: [[52264,1],3]\n  Exit code: 1\n")[2] == "3"


def test_an_error_before_an_abort_with_a_stack_is_the_root_line():
    frames = "".join(f"#{n}  solver::run() at ??:?\n" for n in range(9))
    abort = "[n1:7] *** Process received signal ***\n[n1:7] Signal: Aborted (6)\n"
    assert told(f"ERROR: the mesh has no cells\n{frames}{abort}")[0] == "ERROR: the mesh has no cells"
    crash = abort.replace("Aborted (6)", "Segmentation fault (11)")
    assert (
        told(f"ERROR: the mesh has no cells\n{frames}{crash}")[0] == "[n1:7] Signal: Segmentation fault (11)"
    )


def test_ranks_that_slurm_ended_after_another_one_exited_did_not_fail_first():
    log = """\
1: energy is not finite
0: slurmstepd: error: *** STEP 9.0 ON n1 CANCELLED AT 2026-11-26T00:17:17 ***
srun: error: n1: task 0: Killed
srun: error: n1: task 1: Exited with exit code 13
"""
    assert told(log) == ("1: energy is not finite", "exit-status", "1")
    by_user = log.replace("*** STEP 9.0", "*** JOB 9")
    assert told(by_user)[1] == "cancelled"


@every_row(
    ("line", "class_"),
    [
        ("slurmstepd: error: execve(): mkdir.sh: No such file or directory", "program-start"),
        ("slurm_script: line 12: run.py --nodes ${N*G}: bad substitution", "user-configuration"),
        (
            '  File "fit.py", line 4\n    x = (\n        ^\nSyntaxError: unexpected EOF while parsing',
            "python-exception",
        ),
        (
            "Fatal Error: Cannot open module file 'grid.mod' for reading at (1): No such file or directory",
            "build",
        ),
        (
            "n1:7.app: Unable to create recv CQ of size 4096 on mlx5_1: Cannot allocate memory",
            "ucx-or-libfabric",
        ),
        ("RuntimeError: index has the type CUDAHalfTensor, expected CUDALongTensor", "python-exception"),
        ('RuntimeError: size > 0 INTERNAL ASSERT FAILED at "/src/c10d/NCCLUtils.hpp":51', "nccl-or-rccl"),
        ("failed before prolog: 11/02/2025 07:12:09 [0:4711]: cannot chdir to /home/ada", "scheduler-start"),
        ("raylet: 3 actors killed due to memory pressure", "out-of-memory"),
        ("job stopped: walltime of 3600 s is over, aborting", "time-limit"),
        ("cannot continue: node failure", "node-or-hardware"),
        ("FATAL: permission denied for out.nc", "container-runtime"),
        ("model: fatal: permission denied (out.nc)", "file-system-or-quota"),
        ("ccl: ofi_provider_list: fi_fabric error: ret -2", "ucx-or-libfabric"),
        ("ERROR: no input deck was given", "user-configuration"),
        ("ERROR: the sanity check of extension ggplot2 failed", "build"),
        ("BIND MOUNT FAILED from /var/udiMount//data to /var/udiMount/mnt", "container-runtime"),
    ],
)
def test_the_class_is_of_what_failed_and_not_of_a_word_in_the_line(line, class_):
    assert told(STEPS_BEFORE + line)[:2] == (line.splitlines()[-1].strip(), class_)
