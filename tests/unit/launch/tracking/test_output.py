from toolkit.launch.tracking.output import displayed_line, first_failure, killed_together

OUTPUT = """job: 4, 2 ranks on node[1-2], mode srun-pmix
0: epoch 1/2
1: Traceback (most recent call last):
1: ValueError: boom
srun: error: node2: task 1: Exited with exit code 1
slurmstepd: error: *** STEP 4.1 ON node1 CANCELLED AT 2026-11-21T00:00:00 ***
srun: error: node1: task 0: Killed
"""


def test_the_rank_that_failed_first_is_found_with_its_last_lines():
    failure = first_failure(OUTPUT)
    assert failure is not None
    assert (failure.rank, failure.node, failure.reason) == (1, "node2", "Exited with exit code 1")
    assert failure.last_lines == ("Traceback (most recent call last):", "ValueError: boom")


def test_several_tasks_in_one_line():
    failure = first_failure("srun: error: node1: tasks 3-5: Segmentation fault\n3: bye\n")
    assert failure is not None
    assert (failure.rank, failure.last_lines) == (3, ("bye",))


def test_no_failure_no_answer():
    assert first_failure("0: fine\n") is None


def test_rank_zero_speaks_for_all_and_others_are_named():
    assert displayed_line("0: epoch 1") == "epoch 1"
    assert displayed_line(" 1: hello") == "[rank 1] hello"
    assert displayed_line("srun: error: x") == "srun: error: x"
    assert displayed_line("12: ") == "[rank 12] "


CANCELLED = "0: slurmstepd-node1: error: *** STEP 16.1 ON node1 CANCELLED AT 2026-11-27T22:49:31 ***\n"
KILLED = "srun: error: node1: task 0: Killed\nsrun: error: node2: task 1: Killed\n"


def test_ranks_that_slurm_killed_together_have_no_first_one():
    assert first_failure(CANCELLED + KILLED) is None
    assert killed_together(CANCELLED + KILLED)
    # Without the cancellation, srun reports the rank that failed first before the ranks that it kills.
    assert first_failure(KILLED).rank == 0
    assert not killed_together(KILLED)


def test_a_rank_that_exited_goes_before_the_ranks_that_slurm_killed():
    exited = "srun: error: node2: task 1: Exited with exit code 3\n"
    assert first_failure(CANCELLED + KILLED.splitlines()[0] + "\n" + exited).rank == 1


def test_without_a_cancellation_the_first_report_is_of_the_first_failure():
    log = "srun: error: n1: task 3: Killed\n0: lost\nsrun: error: n2: tasks 0-2: Exited with exit code 1\n"
    assert first_failure(log).rank == 3
