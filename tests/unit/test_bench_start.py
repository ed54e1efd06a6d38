"""Test the simulation of many clients of a slow file server: its results and its plot."""

import pytest

from tests.benchmarks.start.launch import COMMAND, table, watched
from tests.benchmarks.start.limits import METADATA, READ, Queue, Server
from tests.benchmarks.start.replay import Step, replay, steps
from tests.benchmarks.start.run import sent
from tests.unit.tables import every_row

SERVER = Server(metadata_seconds=1.0, threads=2, bandwidth=100.0)


def test_a_server_answers_as_many_operations_at_once_as_it_has_threads():
    queue = Queue(SERVER)
    assert [queue.finish(METADATA, 0, 0.0) for _ in range(5)] == [1.0, 1.0, 2.0, 2.0, 3.0]
    assert queue.finish(METADATA, 0, 10.0) == 11.0


def test_all_reads_share_the_bandwidth_and_do_not_wait_for_names():
    queue = Queue(SERVER)
    assert [queue.finish(READ, 100, 0.0), queue.finish(READ, 50, 0.5)] == [1.0, 1.5]
    assert queue.finish(METADATA, 0, 0.0) == 1.0


def test_a_queue_goes_on_from_its_state():
    one, other = Queue(SERVER), Queue(SERVER)
    for number in range(7):
        other = Queue(SERVER, other.state)
        kind = READ if number % 3 else METADATA
        assert one.finish(kind, 10, number / 9) == other.finish(kind, 10, number / 9)


def test_the_replay_of_one_client_takes_as_long_as_the_client_did():
    trace = [(10.5, 11.6, METADATA, 0), (12.0, 13.25, READ, 100), (13.25, 14.25, METADATA, 0)]
    found = steps(trace, SERVER, 10.0)
    assert [one.pause for one in found] == pytest.approx([0.5, 0.4, 0.0])
    assert [one.cost for one in found] == pytest.approx([0.1, 0.25, 0.0])
    assert replay(found, 0.75, 1, SERVER) == pytest.approx(5.0)


@every_row(("clients", "seconds"), [(1, 4.0), (2, 4.0), (4, 7.0), (64, 97.0)])
def test_clients_wait_for_a_busy_server(clients, seconds):
    client = [Step(0.0, METADATA, 0, 0.0)] * 3
    # The server serves two clients at once; after its last request, a client needs 1 s more.
    assert replay(client, 1.0, clients, SERVER) == pytest.approx(seconds)


def test_clients_that_only_compute_do_not_slow_each_other_unless_they_share_cores():
    assert replay([], 2.0, 64, SERVER) == 2.0
    assert replay([], 2.0, 4, SERVER, cores=2) == 4.0


def test_a_tree_of_copies_grows_slowly():
    server = Server()
    times = [sent(240_000_000, nodes, server) for nodes in (1, 16, 32, 64)]
    assert times == sorted(times)
    assert times[3] < 1.3 * times[1]


def test_a_command_is_watched_for_its_first_output_and_its_end():
    first, end = watched(["sh", "-c", f"echo job; {' '.join(COMMAND)}; sleep 0.3"])
    assert 0 < first <= end - 0.25  # the reader may see the output some milliseconds later
    with pytest.raises(RuntimeError, match="status 3"):
        watched(["sh", "-c", f"{' '.join(COMMAND)}; exit $WITH"], WITH="3")
    with pytest.raises(RuntimeError, match="first output None"):
        watched(["true"])


def test_medians_are_compared_with_the_command_by_hand_of_the_same_place():
    times = {
        "desk: by hand": [(0.2, 0.4), (0.3, 0.5), (9.0, 9.0)],
        "desk: toolkit": [(1.2, 1.5), (1.1, 1.4), (1.4, 1.6)],
        "login: by hand": [(0.1, 0.2)],
        "login: toolkit": [(0.5, 0.6)],
    }
    lines = table(times).splitlines()
    assert lines[3] == "| desk: toolkit | 1.20 s | +0.90 s | 4.0 | 1.50 s | +1.00 s |"
    assert lines[5] == "| login: toolkit | 0.50 s | +0.40 s | 5.0 | 0.60 s | +0.40 s |"
