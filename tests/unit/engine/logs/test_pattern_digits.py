"""Test that digits in patterns of ``faultlines.toml``, such as error numbers, decide which lines match."""

import re

from tests.mutations import next_digit
from tests.unit.knowledge.rows import tables

LINES = [
    "ERROR --------",
    "Could not find the bnb library at /opt/bnb/libbnb.so",
    'unable to fork a new process via the "execve" system call',
    "gmx_mpi:\u00a0commande introuvable",
    "./job.sh: input.dat: Arquivo ou diretório inexistente",
    "Fehler: keine Rechte",
    "failed to create QP: errno12",
    "Error: --gpus must be at least 1",
    "[cli_0]: aborting job:",
    "Timeout (0:01:00)!",
    "glfw: no x11",
    "version of zlib does not match the version that it was built",
    "job.sh: 7: [: x: unexpected operator",
    "forrtl: error (69): process interrupted (SIGINT)",
    "rank 1 exited with SIGIO",
    "CalledProcessError: Command sbatch job.sh returned 1",
    "Command 'tar' died with <Signals.SIGIO: 29>.",
    "type=timeout severity=0",
    "type=cancel severity=0",
    "pbs_mom: Unable to start the job",
    "error: './libfoo.so: cannot open shared object file",
    "ada@node1: Permission denied (publickey)",
    "timeout: sending signal HUP to command 'solver'",
    "=   EXIT CODE: 129",
    "slurmstepd: error: mpi/pmi2: connect to node1",
    'srun: error: Unable to resolve "node1"',
    "sacct: 8 FAILED 0:1",
    "invalid argument x for -n",
    "fusermount3: no device",
    'Error response from daemon: runtime exec: "solver"',
    "ERROR: c10d: i/o timeout",
    "ERROR  : no image",
    "module 'cv2' has no attribute 'x'",
    "/usr/bin/ld.so: cannot find -lfoo",
    "/src/a.c:3: error: no type",
    "Unknown c10d backend",
    "Unknown keyword",
    'the "command not found" error',
    "Unable to initialize backend rocm",
    "CUFFT_FAIL",
    "terminate called after throwing an instance of 'c10::DistBackendError'",
    "429 Too Many Requests",
    "[Errno 11] no lock",
    "[Errno 24] open",
    "collect2: error: no input",
    "compiled using NumPy 1",
    "ftl: no input",
    '> 0 INTERNAL ASSERT FAILED at "/src/c10d/NCCLUtils.hpp":51',
    "./a: Violación de segmento",
    "[rank 1] uncaught KeyError: 'speaker_17' (train.py:18 in",
    "failed before prolog: 11/02/2025 07:12:09 [0:4711]: cannot",
    "libfabric:verbs:ep_ctrl:vrb_open():6<warn> rdma_create_ep failed:",
    "DDP expects same model across all ranks, but Rank 2 has 51, and rank 0 has inconsistent 0 params",
    "step 3: KeyError: 4",
    "failed call to cuInit: UNKNOWN ERROR (303)",
    "FILETRANSFER:1:non-zero exit (1) from stash_plugin. |Error: failed to get information for remote URL",
    "forrtl: severe (24): end-of-file during read, unit 5, file stdin",
    "forrtl: severe (41): insufficient virtual memory",
    "forrtl: severe (174): SIGSEGV, segmentation fault occurred",
    "sqlite3.OperationalError: disk I/O error",
    "/usr/bin/addr2line: Dwarf Error: Can't find .debug_ranges",
    "3558 driver.c:208] driver service terminated with signal 15",
    "[1f/0c93ab] process > ALIGN (3) [100%] 3 of 3, failed: 1",
    "*** FATAL ERROR (node4:6354): in gasneti_spawnerInit(): No supported spawner was able to initialize",
    "/usr/bin/ld: a.o: multiple definition of `main'",
    "=>> PBS: job killed: mem 38427376kb exceeded limit",
    "1.2s: job.exception type=alloc severity=0 unsatisfiable",
    "note",
    "=   EXIT CODE: 139",
    "exitcode  : -15 (pid: 2227)",
    "ERROR:composer.cli.launcher:Rank 2 crashed with exit code -6",
    "2.86s/it]WARNING:torch.distributed.elastic.agent.server.api:Received 1 death signal,",
    "-----",
    "[node2:19381] *** reported by process [3710458193,3]",
    "slurmstepd   0x155552ddfd40: error: pyxis: printing enroot",
    "exit code 137",
    "PMI2_Init failed to initialize.  Return code: 14",
    "sbatch failed. The error message was 'sbatch: error: Your",
    'Cannot run program "sbatch" (in directory "/work/b9"): error=2, No',
    "bool IPstream::init(): attempt to run parallel on 1 processor",
    "/home/user1/software/ucx-1.9.0/src/uct/ib/mlx5/ib_mlx5_log.c:",
    "RuntimeError: Socket Timeout",
    "mpi4py",
    "[node61:19720] NO LT_DLADVISE - CANNOT LOAD LIBOMPI",
    "RuntimeError: Unknown backend gpu",
    "=   EXIT CODE: 9",
    "forrtl: severe (17): syntax error in NAMELIST input",
    "PMI2_Job_GetId returned 14",
    "Failed to modify A QP",
    "pdsh@n1: n2: ssh exited with exit code 255",
]
"""Lines of programs and recorded jobs. Each line shows that a digit of some pattern matters."""


def changed() -> dict[str, str]:
    """Map the first pattern with a digit in each row to the same pattern with the next digit."""
    found: dict[str, str] = {}
    for row in tables("faultlines")["line"]:
        pairs = [(pattern, next_digit(pattern)) for pattern in row.get("patterns", ())]
        found.update([(old, new) for old, new in pairs if old != new][:1])
    return found


def differ(old: str, new: str, line: str) -> bool:
    """Return whether only one of two patterns finds a line. An invalid pattern finds none."""
    try:
        return bool(re.search(old, line)) != bool(re.search(new, line))
    except re.error:
        return bool(re.search(old, line))


def test_a_line_shows_the_first_digit_in_the_patterns_of_each_row():
    shown = {old: [line for line in LINES if differ(old, new, line)] for old, new in changed().items()}
    assert [pattern for pattern, lines in shown.items() if not lines] == []
    assert set(LINES) - {line for lines in shown.values() for line in lines} == set()
