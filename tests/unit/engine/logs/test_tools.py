"""Test lines of container runtimes, launchers, shells and build tools in the output of a job."""

from tests.unit.engine.logs.test_root import TRACEBACK, told
from tests.unit.tables import every_row
from toolkit.engine.logs.explanation import explain_output
from toolkit.engine.logs.joblines import Output

STEPS_BEFORE = "step 1 loss 0.41\nstep 2 loss 0.38\n"


@every_row(
    ("line", "class_"),
    [
        ("FATA[0001] reading manifest v3 in registry.example/net: access is denied", "container-runtime"),
        (
            "FATA[0003] copying blob: dial tcp: lookup registry.example: server misbehaving",
            "network-or-dns",
        ),
        ("ERRO[0012] User-selected graph driver vfs overwritten", "container-runtime"),
        (
            'time="2026-01-02T03:04:05Z" level=fatal msg="writing layer: no space left on device"',
            "file-system-or-quota",
        ),
        ("time=2026-01-02T03:04:05Z level=error msg=unmounting", "container-runtime"),
        ('ERRO[0000] exec: "train": executable file not found in $PATH', "program-start"),
        ("[conmon:e]: no pipe to the parent", "container-runtime"),
    ],
)
def test_an_error_of_a_go_program_is_the_root_line(line, class_):
    assert told(f"INFO[0000] pulling\nDEBU[0000] no such file\n{line}\n")[:2] == (line, class_)


@every_row(
    "level", ["WARN[0000] ", "INFO[0000] ", "DEBU[0002] ", 'time="2026-01-02T03:04:05Z" level=warn msg=']
)
def test_a_go_program_that_only_warns_has_no_root_line(level):
    assert told(f"{level}cannot reach the daemon: permission denied\n")[0] == ""


def test_a_go_program_may_continue_after_an_error():
    text = "ERRO[0000] cannot set the cgroup manager\n" + TRACEBACK.format("it", "ValueError: batch of 7")
    assert told(text)[0] == "ValueError: batch of 7"


@every_row(
    "line",
    [
        "/sbin/ldconfig.real: Can't create temporary cache file /etc/ld.so.cache~: Read-only file system",
        "bash: warning: setlocale: LC_ALL: cannot change locale (de_DE.UTF-8): No such file or directory",
        "perl: warning: Setting locale failed.",
        "locale: Cannot set LC_CTYPE to default locale: No such file or directory",
        "manpath: can't set the locale; make sure $LC_* and $LANG are correct",
        'Setting LC_TIME failed, using "C"',
        "groups: cannot find name for group ID 4711",
        "INFO:    underlay of /etc/localtime required more than 50 (71) bind mounts",
        "WARNING: Skipping mount /var/lib/apptainer/mnt: no such file or directory",
        "WARNING: Could not lookup the current user's information: unknown userid 4711",
        "/bin/sh: warning: shell level (1000) too high, resetting to 1",
        'tput: unknown terminal "xterm-256color"',
        "stty: 'standard input': Inappropriate ioctl for device",
        "mesg: ttyname failed: Inappropriate ioctl for device",
        "bash: cannot set terminal process group (-1): Inappropriate ioctl for device",
        "/usr/bin/xauth:  error in locking authority file /home/ada/.Xauthority",
        "error: XDG_RUNTIME_DIR not set in the environment.",
        'ERRO[0000] unable to write pod event: "open : no such file or directory"',
        "[17958.48] [node2:91 :f]  vfs_sock.c:49 UCX  DIAG  failed to create '/run/user/1': No such file",
    ],
)
def test_a_harmless_line_at_the_start_of_a_container_is_no_root_line(line):
    assert told(f"{line}\nhello\n")[0] == ""
    assert (
        told(f"{line}\nlibgomp: Thread creation failed: Resource temporarily unavailable\n")[1]
        == "system-limit"
    )


BANNER = """\
===================================================================================
=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES
=   PID 4711 RUNNING AT node7
=   EXIT CODE: {}
=   CLEANING UP REMAINING PROCESSES
=   YOU CAN IGNORE THE BELOW CLEANUP MESSAGES
===================================================================================
[proxy:0:2@node9] HYD_pmcd_pmip_control_cmd_cb (proxy/pmip_cb.c:480): assert (!closed) failed
[proxy:0:2@node9] main (proxy/pmip.c:127): demux engine error waiting for event
[mpiexec@node7] HYDT_bscu_wait_for_completion (utils/bscu_wait.c:109): a process terminated badly; aborting
"""


@every_row(("code", "class_"), [(135, "signal"), (143, "signal"), (2, "exit-status"), (120, "exit-status")])
def test_messages_after_the_banner_of_hydra_are_consequences(code, class_):
    text = BANNER.format(code)
    assert told(text)[:2] == (f"=   EXIT CODE: {code}", class_)
    assert len(explain_output(Output(text)).consequences) == 3


def test_an_error_before_the_banner_of_hydra_is_the_root_line():
    line = "flow: cannot open the mesh of step 3"
    assert told(f"{line}\n{BANNER.format(4)}")[0] == line


@every_row("label", ["", "3: "])
def test_the_source_in_a_traceback_without_its_head_is_no_root_line(label):
    fragment = (
        '    fail_hard(error="denied")\n'
        '  File "/home/ada/lib/rank.py", line 88, in fail_hard\n'
        '    hvd.rendezvous(master, "connection refused")\n'
        "LookupError: no section for node9\n"
    )
    text = "".join(f"{label}{line}\n" for line in fragment.splitlines())
    assert told(text)[:2] == (f"{label}LookupError: no section for node9", "python-exception")


@every_row(
    ("message", "class_"),
    [
        ("(0) Internal: cuDNN failed to load its kernels for lstm/gru_1", "cuda-or-hip"),
        ("(0) Resource exhausted: OOM when allocating tensor with shape[64,512]", "out-of-memory"),
        ("(0) Invalid argument: Incompatible shapes: [64] vs. [32]", "python-exception"),
    ],
)
def test_the_next_line_of_a_message_tells_the_class(message, class_):
    error = f"tensorflow.python.framework.errors_impl.AbortedError: 3 root error(s) found.\n  {message}"
    text = TRACEBACK.format("it", f"{error}\n\t [[node decoder/step (defined at /home/ada/net.py:9)]]")
    root, found, _ = told(text)
    assert (root.endswith(message), found) == (True, class_)


MISSED = "submit.sh: line 7: /opt/site/etc/profile.sh: No such file or directory\n"


def test_an_exception_after_a_line_that_the_shell_passed_is_the_root_line():
    text = f"{MISSED}start of the run\n" + TRACEBACK.format(
        "it", "RuntimeError: CUDA error: invalid argument"
    )
    assert told(text)[:2] == ("RuntimeError: CUDA error: invalid argument", "cuda-or-hip")


@every_row(
    ("line", "error"),
    [
        (MISSED, "ModuleNotFoundError: No module named 'torch'"),
        (MISSED, "FileNotFoundError: [Errno 2] No such file or directory: 'mesh.h5'"),
        ("submit.sh: line 7: module: command not found\n", "RuntimeError: CUDA error: invalid argument"),
        ("submit.sh: line 7: conda: command not found\n", "ValueError: no environment"),
    ],
)
def test_a_line_of_the_shell_that_explains_the_exception_is_the_root_line(line, error):
    assert told(line + TRACEBACK.format("it", error))[0] == line.strip()


RULE = f"{'-' * 74}\n"
ABORTS = [
    f"{RULE}MPI_ABORT was invoked on rank 0 in communicator MPI_COMM_WORLD\nwith errorcode 9.\n{RULE}",
    "Abort(9) on node 0 (rank 0 in comm 0): application called MPI_Abort(MPI_COMM_WORLD, 9) - process 0\n",
]


@every_row("abort", ABORTS, ids=["open-mpi", "mpich"])
@every_row(
    ("lines", "root", "class_"),
    [
        ("unknown keyword 'tsteps' in input deck\nflow: quitting\n", 0, "user-configuration"),
        ("cells: 4096\nnumber of ranks must be a square\nbye\n", 1, "mpi"),
        (f"{RULE}no interface was found; performance may be lower\n{RULE}bad time step\n", 3, "mpi"),
    ],
)
def test_what_a_program_says_before_it_aborts_is_the_root_line(abort, lines, root, class_):
    assert told(lines + abort)[:2] == (lines.splitlines()[root], class_)


@every_row("abort", ABORTS, ids=["open-mpi", "mpich"])
@every_row(
    "lines",
    [
        "step 58 loss 0.843\nstep 59 loss 0.841\n",
        "using only 4 ranks\nno restart file, starting at time 0\n",
        "pressure not converged yet\nstep 59 loss 0.841\n",
        f"{RULE}no interface was found; performance may be lower\n{RULE}",
        "NOTE: not on a GPU\n",
    ],
)
def test_the_abort_is_the_root_line_if_the_program_does_not_complain(abort, lines):
    root, class_, _ = told(lines + abort)
    assert ("MPI_A" in root, class_) == (True, "mpi")


PIP = """\
  error: subprocess-exited-with-error
  │ exit code: 1
  ╰─> [4 lines of output]
      running bdist_wheel
      copying fastmesh/errors.py -> build/lib
      {}
      [end of output]
  note: This error originates from a subprocess, and is likely not a problem with pip.
  ERROR: Failed building wheel for fastmesh
ERROR: Could not build wheels for fastmesh, which is required to install pyproject.toml-based projects
"""
OLD_PIP = """\
    ERROR: Command errored out with exit status 1:
         cwd: /tmp/pip-req-build-q/bindings
    Complete output (2 lines):
    running build_ext
    {}
    ----------------------------------------
"""


@every_row("pip", [PIP, OLD_PIP], ids=["new", "old"])
@every_row(
    ("line", "class_"),
    [
        ("error: no Fortran compiler on this node", "build"),
        ("LookupError: no tag of a release", "build"),
        ("ModuleNotFoundError: No module named 'pybind11'", "package"),
        ("src/mesh.cc:3:10: fatal error: hdf5.h: No such file or directory", "build"),
    ],
)
def test_the_error_in_the_output_that_pip_quotes_is_the_root_line(pip, line, class_):
    text = pip.format(line) + TRACEBACK.format("it", "ImportError: no fastmesh")
    assert told(text)[:2] == (line, class_)


@every_row(
    ("text", "root"),
    [
        (PIP.format("done"), "ERROR: Failed building wheel for fastmesh"),
        (OLD_PIP.format("done"), "ERROR: Command errored out with exit status 1:"),
        ("ninja: build stopped: subcommand failed.\n", "ninja: build stopped: subcommand failed."),
        ("ERROR: Could not build wheels for fastmesh\n", "ERROR: Could not build wheels for fastmesh"),
        ("CMake Error at mesh/CMakeLists.txt:12:\n", "CMake Error at mesh/CMakeLists.txt:12:"),
    ],
)
def test_a_report_of_a_failed_build_has_the_class_of_builds(text, root):
    assert told(text)[:2] == (root, "build")


@every_row(
    ("line", "class_"),
    [
        ("ptxas fatal   : Value 'sm_100' is not defined for option 'gpu-name'", "cuda-or-hip"),
        ("nvlink error   : Undefined reference to 'step' in 'a.o'", "build"),
        ("x.cu:3:10: fatal error: cuda.h: No such file or directory", "build"),
    ],
)
def test_the_error_of_a_compiler_below_an_exception_is_the_root_line(line, class_):
    text = f"[default6]:[rank6]: RuntimeError: PTX codegen error:\n\n[default6]:[rank6]: {line}\n"
    root, found, rank = told(text)
    assert root.endswith(f": {line}")
    assert (found, rank) == (class_, "6")


def test_memory_that_a_go_program_cannot_reserve_is_out_of_memory():
    log = (
        "srun: error: node1: task 0: Exited with exit code 2\n0: fatal error: failed to reserve page memory\n"
    )
    assert told(STEPS_BEFORE + log)[:2] == ("0: fatal error: failed to reserve page memory", "out-of-memory")
