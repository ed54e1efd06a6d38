"""Test the inputs of `tests.benchmarks.scale`: lists, answers and outputs have the requested size."""

from tests.benchmarks.scale import texts
from tests.benchmarks.scale.timed import Taken, timed
from toolkit.launch.tracking.output import first_failure
from toolkit.launch.tracking.slurm import parse_show_job, parse_waiting
from toolkit.probe.asking import NodeChoice
from toolkit.probe.bundle import read
from toolkit.probe.hostlist import expand


def test_a_list_has_as_many_nodes_as_it_was_made_for():
    assert [len(expand(texts.host_list(n))) for n in (1, 9, 10, 1000)] == [1, 9, 10, 1000]


def test_nodes_are_told_apart_by_their_memory_alone():
    bundle = read(texts.answers(200), "here", NodeChoice("all", 10))
    assert [len(group.nodes) for group in bundle.groups] == [198, 2]
    assert bundle.groups[1].differs == ("shm",)
    assert bundle.silent == {}


def test_what_is_followed_is_read():
    status = parse_show_job(texts.job_line(30))
    assert status is not None
    assert (status.state, len(expand(status.nodes))) == ("running", 30)
    assert parse_waiting(texts.queue(5), "5") == (5, 5)
    failure = first_failure(texts.output(40, 400))
    assert failure is not None
    assert (failure.rank, len(failure.last_lines)) == (39, 10)


def test_a_row_has_the_median():
    taken = timed("x", lambda: 3, lambda answer: f"{answer}", rounds=3)
    assert (len(taken.seconds), taken.note) == (3, "3")
    rows = [Taken(what="x", seconds=s, note="y").row() for s in ((1.0, 9.0, 2.0), (0.0021,))]
    assert rows == ["| x | 2.00 s | y |", "| x | 2.1 ms | y |"]
