"""Test the comparison of outputs, which ignores numbers, keys, digests, widths and omitted lines."""

from tests.courses.likeness import difference, lasting, masked, shortened
from tests.unit.tables import every_row

TABLE = ["epoch    loss", "-----  ------", "    1  0.1364", "    2  0.0458"]


@every_row(
    ("one", "other"),
    [
        ("epoch 1/2  loss 0.1364  34.81 s  3,447 images/s", "epoch 1/2  loss 0.2  9.1 s  12,447 images/s"),
        ("trained mnist-20261121-164417-59c954 (4)", "trained mnist-20261122-061417-0a0b0c (12)"),
        ("sha256:9fcf8905ab1d…", "sha256:0fcf8905ab1e…"),
        ("  -----  ------", "  -----  --------"),
        ("████ 3", "██▌ 12"),
        ("loss 1e-07", "loss 0.31"),
        ("on node1", "on node2"),
        ("812.3 ms for 4 MiB; 981 MB/s", "1.2 s for 1 KiB; 2.81 GB/s"),
    ],
)
def test_what_differs_from_run_to_run_is_masked(one, other):
    assert masked(one) == masked(other)


@every_row(
    ("one", "other"),
    [
        ("✔ srun-pmix  ok", "✘ srun-pmix  ok"),
        ("job is complete", "job has failed"),
        ("loss 0.3", "loss nan"),
        ("2 ranks on node1", "2 ranks"),
        ("added", "faced"),
        ("4 images/s", "4 s"),
        ("3 GB/s", "3 GB"),
    ],
)
def test_words_are_not(one, other):
    assert masked(one) != masked(other)


def test_lines_of_progress_and_empty_ends_are_left_out():
    printed = ["", "16:44:15 Reading my.sif", "job: 4", "", "done", "16:44:16 Job 4 runs", ""]
    assert lasting(printed) == ["job: 4", "", "done"]


def test_that_a_step_had_to_wait_for_the_one_before_is_progress_and_an_error_of_srun_is_not():
    waited = [
        "srun: Job 35 step creation temporarily disabled, retrying (Requested nodes are busy)",
        "srun: Step created for StepId=35.1",
        "srun: error: node1: task 0: Exited with exit code 1",
    ]
    assert lasting(waited) == waited[2:]


def test_the_same_table_with_other_numbers_is_alike():
    other = ["epoch    loss", "-----  -------", "    1  12.1364", "    2  0.9"]
    assert difference(TABLE, other) == []


def test_a_table_that_loses_a_row_is_not():
    assert any("#" in line for line in difference(TABLE, TABLE[:-1]))
    assert difference(TABLE[:-1], TABLE)


def test_an_ellipsis_stands_for_any_lines_and_for_none():
    shown = ["a 1", "...", "b 2"]
    assert difference(shown, ["a 3", "b 4"]) == []
    assert difference(shown, ["a 3", "x", "y", "b 4"]) == []
    assert difference(["..."], ["x"]) == []
    assert difference(["...", "b"], ["x", "b"]) == []
    assert difference(["a", "..."], ["a", "x"]) == []


@every_row("printed", [["a 1", "x"], ["x", "a 1", "b 2"], ["a 1", "b 2", "x"], ["b 2", "a 1"]])
def test_what_stands_around_an_ellipsis_must_be_there(printed):
    assert difference(["a 1", "...", "b 2"], printed)


def test_lines_left_out_stay_left_out_of_new_output():
    assert shortened(["a 1", "...", "b 2"], ["a 3", "x", "b 4"]) == ["a 3", "...", "b 4"]
    assert shortened(["a 1", "...", "b 2"], ["a 3", "x"]) is None


def test_a_part_may_come_twice_before_the_end():
    assert shortened(["...", "b"], ["b", "x", "b"]) == ["...", "b"]


def test_lines_of_other_ranks_come_when_they_come():
    printed = ["job: 4, 3 ranks", "[rank 2] node3", "[rank 1] node2", "node1", "[rank 1] more"]
    settled = ["job: 4, 3 ranks", "node1", "[rank 1] node2", "[rank 1] more", "[rank 2] node3"]
    assert lasting(printed) == settled
