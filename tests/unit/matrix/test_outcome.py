"""Test that the matrix finds each outcome of a launch in real output."""

from tests.matrix.outcome import classify, ranks, telling
from tests.unit.tables import every_row


def told(size, comm="begun", rank=0):
    return (
        f'{{"rank": {rank}, "size": {size}, "host": "node1", "library": "Open MPI v5", "comm": "{comm}"}}\n'
    )


def world(*sizes, comm="ok"):
    return "".join(told(size, "begun", n) + told(size, comm, n) for n, size in enumerate(sizes))


@every_row(
    ("text", "status", "outcome"),
    [
        (world(2, 2), 0, "ok"),
        ("0: " + world(2, 2).replace("\n{", "\n1: {"), 0, "ok"),
        (world(1, 1), 0, "singletons"),
        (world(1, 2), 0, "wrong-size"),
        (world(2, 2, comm="wrong"), 3, "comm-failure"),
        (told(2) + told(2), 1, "comm-failure"),
        (told(2), 0, "comm-failure"),
        (told(2) + "Caught signal 11 (Segmentation fault)", 139, "crash"),
        (told(1) + told(1) + "srun: error: node2: task 1: Exited with exit code 1", 1, "singletons"),
        ("[m2:00527] OPAL ERROR: Unreachable in file ext3x_client.c at line 112", 1, "init-failure"),
        (
            "/opt/probe: error while loading shared libraries: libmpi.so.40: cannot open shared object file",
            127,
            "loader-failure",
        ),
        (
            "libc.so.6: version `GLIBC_2.38' not found (required by /host/lib/libmpi.so.40)",
            1,
            "loader-failure",
        ),
        (
            "/opt/m/libfabric.so.1: version `FABRIC_1.8' not found (required by /opt/venv/lib/libmpi.so.40)",
            1,
            "loader-failure",
        ),
        ('FATAL:   "mpirun": executable file not found in $PATH', 255, "unavailable"),
        ("mca_base_component_find: component_find: cannot open shared object file", 1, "init-failure"),
        (
            "unable to open mca_plm_rsh: mca_plm_rsh.so: cannot open shared object file (ignored)",
            1,
            "init-failure",
        ),
        (
            (
                "1: ORTE_ERROR_LOG: Unable to start a daemon\n"
                "0: slurmstepd-node1: error: *** STEP 5.0 ON node1 CANCELLED AT 2026-11-23T11:32:09 ***\n"
                "0: mca_plm_rsh.so: cannot open shared object file: Transport endpoint is not connected\n"
                "0: Signal: Bus error (7)"
            ),
            143,
            "init-failure",
        ),
        (
            (
                "slurmstepd-node1: error: *** STEP 5.0 ON node1 CANCELLED AT 2026-11-23T11:32:09 ***\n"
                "error while loading shared libraries: libmpi.so.20: cannot open shared object file"
            ),
            127,
            "loader-failure",
        ),
        (
            (
                "srun: error: node1: task 0: Exited with exit code 127\n"
                "INFO:    gocryptfs not found, will not be able to use gocryptfs\n"
                "slurmstepd-node1: error: *** STEP 5.0 ON node1 CANCELLED AT 2026-11-23T11:32:09 ***\n"
                "error while loading shared libraries: libmpi.so.20: cannot open shared object file"
            ),
            127,
            "loader-failure",
        ),
        ("mca_plm_rsh: mca_plm_rsh.so: cannot open shared object file (ignored)\r\nend", 1, "init-failure"),
        ('FATAL:   "mpiexec": executable file not found in $PATH', 255, "unavailable"),
        ("Illegal instruction", 132, "crash"),
        ("srun: error: node2: task 1: Exited with exit code 139", 143, "crash"),
        ("0: probe:73838 terminated with signal 7 at PC=7f2918d7dc7f SP=7ffc1191c018.", 1, "crash"),
        (
            (
                "ERROR: ld.so: object '/nowhere/libmpi.so' from LD_PRELOAD cannot be preloaded"
                " (cannot open shared object file): ignored.\nORTE_ERROR_LOG: Not found"
            ),
            143,
            "init-failure",
        ),
        ("srun: error: Couldn't find the specified plugin name for mpi/pmix looking", 1, "unavailable"),
        ("jobs/x.run: line 1: exec: mpirun: not found", 127, "unavailable"),
        ('salloc: error: _fork_command: Unable to find command "mpirun"', 1, "unavailable"),
        ("Segmentation fault", 139, "crash"),
        ("", 139, "crash"),
        ("", 1, "init-failure"),
    ],
)
def test_a_class_is_told_by_the_text_and_the_status(text, status, outcome):
    assert classify(text, status, timed_out=False, want=2).outcome == outcome


def test_a_bus_error_of_a_rank_that_slurm_ended_is_not_how_the_launch_ended():
    """Slurm may unmount the container's file system before a rank ends, which causes a late bus error."""
    first = "0: Abort(6): Fatal error in internal_Init: Other MPI error\n"
    ended = "srun: error: node1: task 0: Exited with exit code 15\nsrun: Terminating StepId=157.0\n"
    after = "1: probe:10 terminated with signal 7 at PC=7f\nsrun: error: node2: task 1: Bus error\n"
    assert classify(first + ended + after, 135, timed_out=False, want=2).outcome == "init-failure"
    assert classify(first + after + ended, 135, timed_out=False, want=2).outcome == "crash"
    assert classify(ended + after, 135, timed_out=False, want=2).outcome == "crash"


def test_what_takes_too_long_hangs_whatever_it_wrote():
    seen = classify(world(2, 2), 124, timed_out=True, want=2)
    assert (seen.outcome, seen.sizes) == ("hang", (2, 2))


def test_only_a_wrong_world_with_status_0_is_silent():
    assert classify(world(1, 1), 0, timed_out=False, want=2).silent
    assert not classify(world(2, 2), 0, timed_out=False, want=2).silent
    assert not classify("abort", 1, timed_out=False, want=2).silent


def test_a_torn_line_of_a_rank_is_passed_by():
    assert ranks('{"rank": 0, "si\n' + told(2)) == ranks(told(2))


def test_lines_of_ranks_that_a_launcher_has_mixed_are_counted_all_the_same():
    one, other = (told(2, "begun", n) + told(2, "ok", n) for n in (0, 1))
    mixed = one[:50] + other + one[50:]
    assert classify(mixed, 0, timed_out=False, want=2).outcome == "ok"
    alone = world(1)[:60] + world(1) + world(1)[60:]
    assert classify(alone, 0, timed_out=False, want=2).sizes == (1, 1)


def test_braces_in_what_a_library_says_are_no_end_of_the_line():
    line = told(2).replace("Open MPI v5", "MPICH 4.2.1 --includedir=${prefix}/include")
    assert classify(line + line.replace("begun", "ok"), 0, timed_out=False, want=1).sizes == (2,)


def test_the_line_that_tells_is_no_help_text_that_is_not_there():
    text = (
        "0: Sorry!  You were supposed to get help about:\n0:     find-available:not-valid\n"
        "0: But I couldn't open the help file:\n0: [node1:1] PMIX ERROR: UNREACHABLE in file x.c\n"
    )
    assert telling(text) == "[node1:1] PMIX ERROR: UNREACHABLE in file x.c"
    assert telling("") == ""
    assert (
        telling("/var/lib/slurm/slurmd/job00085/slurm_script: line 2:  8220 Killed   timeout -k 5 75") == ""
    )
