"""Test that toolkit detects worlds of size 1 in the ranks' own output, and only there."""

from tests.unit.tables import every_row
from toolkit.engine.logs.signature_match import explain


def ids(text: str) -> list[tuple[str, str]]:
    return [(f.id, f.severity) for f in explain(text)]


@every_row(
    "line",
    [
        "Hello from rank 0 of 1",
        "Hello world from processor node, rank 0 out of 1 processors",
        "Process 0 of 1 is alive",
        "rank: 0/1",
        "I am rank 0, size 1",
        "world size: 1",
        "world_size=1",
        "Horovod size: 1",
        "hvd.size() = 1",
        "hvd.size(): 1",
        "MPI_COMM_WORLD size is 1",
        "communicator size 1",
    ],
)
def test_ranks_of_different_tasks_that_are_each_alone(line):
    assert ids(f"0: {line}\n1: {line}\n") == [("ranks-alone", "error")]


def test_without_labels_the_job_must_have_had_more_ranks_than_one():
    assert ids("job: 12, 2 ranks on node[1-2], mode srun-pmi2\nrank 0 of 1\nrank 0 of 1\n") == [
        ("ranks-alone", "error")
    ]
    assert ids("job: 12, 1 rank on node1, mode srun-pmi2\nrank 0 of 1\nrank 0 of 1\n") == []


def test_without_labels_and_numbers_it_is_a_doubt():
    assert ids("rank 0 of 1 on node1\nrank 0 of 1 on node2\n") == [("ranks-alone", "warning")]


def test_one_program_that_says_it_in_two_ways_is_alone_by_intention():
    assert ids("rank 0 of 1\nworld size: 1\n") == []
    assert ids("0: rank 0 of 1\n0: rank 0 of 1\n") == []
    assert ids("rank 0 of 1\n") == []


def test_a_world_of_more_is_no_failure():
    assert ids("0: rank 0 of 2\n1: rank 1 of 2\n") == []
    assert ids("0: rank 0 of 1\n1: rank 0 of 1\n2: rank 2 of 4\n") == []


@every_row(
    "line", ["batch size: 1", "loaded 0 of 1 files", "vocabulary size 1", "world of 1.5 %", "epoch 0 of 1"]
)
def test_other_sizes_are_not_those_of_the_world(line):
    assert ids(f"0: {line}\n1: {line}\n") == []


def test_the_library_that_tells_the_cause_stands_beside_it():
    text = "0: MPI startup(): PMI server not found.\n0: rank 0 of 1\n1: rank 0 of 1\n"
    assert [name for name, _ in ids(text)] == ["image-lacks-pmix", "ranks-alone"]
