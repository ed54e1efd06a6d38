"""Test the preflight of Gloo's network: silent ranks, unreachable ranks, and damaged messages."""

import socket
import threading
import time

from tests.unit.tables import every_row
from tests.unit.trainers.test_gloo import served, task
from toolkit.trainers import preflight
from toolkit.trainers.checks import ring
from toolkit.trainers.checks.wanted import Requirements


def variables(store, rank, size, host="here"):
    return {
        "HOROVOD_CONTROLLER": "gloo",
        "HOROVOD_RANK": str(rank),
        "HOROVOD_SIZE": str(size),
        "HOROVOD_HOSTNAME": host,
        "HOROVOD_GLOO_IFACE": "lo",
        "HOROVOD_GLOO_RENDEZVOUS_ADDR": f"127.0.0.1:{store.server_address[1]}/{store.path}",
        "HOROVOD_GLOO_RENDEZVOUS_PORT": str(store.server_address[1]),
    }


def check(given, tasks, seconds):
    verdict, interface = ring.check_ring(given, Requirements(tasks=tasks, seconds=seconds))
    return next(iter(verdict.failures), ""), verdict.nodes, interface


def together(store, size, hosts=None, seconds=20.0, ranks=None):
    found = {}

    def run(rank):
        host = (hosts or ["here"] * size)[rank]
        found[rank] = check(variables(store, rank, size, host), size, seconds)

    threads = [
        threading.Thread(target=run, args=(rank,)) for rank in (range(size) if ranks is None else ranks)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


@every_row(("hosts", "nodes"), [(["a"], 1), (["a", "b"], 2), (["a", "a", "b", "b"], 2)])
def test_a_ring_that_is_whole_passes(hosts, nodes):
    with served(task()) as store:
        found = together(store, len(hosts), hosts)
    assert found == dict.fromkeys(range(len(hosts)), ("", nodes, "lo"))


def test_a_world_of_another_size_is_told_without_a_message():
    with served(task()) as store:
        problem, _, _ = check(variables(store, 0, 3), 4, 1.0)
    assert problem == "Gloo finds a world of size 3, but 4 tasks were started"


def test_what_arrives_damaged_is_told_by_all(monkeypatch):
    sound = ring._message
    sender = threading.current_thread
    spoilt = []

    def message(rank):
        # Rank 1 sends wrong bytes in its first message; rank 0 compares the message with the right bytes.
        if rank == 1 and not spoilt:
            spoilt.append(sender().name)
            return sound(rank)[:-1] + b"?"
        return sound(rank)

    monkeypatch.setattr(ring, "_message", message)
    with served(task()) as store:
        found = together(store, 2)
    assert {problem for problem, _, _ in found.values()} == {"rank 0 received a damaged message from rank 1"}


def test_a_rank_that_is_not_reached_is_told_by_all(monkeypatch):
    def refused(place, message, deadline, failed):
        failed.append("No route to host")

    monkeypatch.setattr(ring, "_send", refused)
    with served(task()) as store:
        found = together(store, 2, seconds=0.5)
    assert {problem for problem, _, _ in found.values()} == {
        "rank 0 cannot reach rank 1 at 127.0.0.1: No route to host"
    }


def test_a_rank_from_which_nothing_comes_is_told(monkeypatch):
    monkeypatch.setattr(ring, "_send", lambda *_: None)
    with served(task()) as store:
        found = together(store, 2, seconds=0.5)
    assert {problem for problem, _, _ in found.values()} == {
        "rank 0 on 127.0.0.1 received no data from rank 1"
    }


def test_a_rank_that_says_nothing_is_waited_for_no_longer_than_the_limit(monkeypatch):
    monkeypatch.setattr(ring, "_TIME_TO_HEAR", 0.3)
    begun = time.monotonic()
    with served(task()) as store:
        found = together(store, 2, seconds=0.5, ranks=[0])
    assert found[0][0].startswith("rank 0 on here: ")
    assert time.monotonic() - begun < 10


def test_a_store_that_is_gone_is_told():
    with served(task()) as store:
        given = variables(store, 1, 2)
    problem, nodes, _ = check(given, 2, 0.5)
    assert "the HTTP store on rank 0 does not answer" in problem
    assert nodes == 0


def test_what_is_sent_to_nobody_is_told():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    failed = []
    ring._send(("127.0.0.1", port), b"x", time.monotonic() + 1, failed)
    assert failed == ["Connection refused"]


def test_the_address_is_the_first_of_the_interface_else_that_of_the_name(monkeypatch):
    known = [("lo", "127.0.0.1"), ("ib0", "10.0.0.1"), ("ib0", "10.0.0.2")]
    assert ring._address_of("ib0", known) == "10.0.0.1"
    monkeypatch.setattr(socket, "gethostbyname", lambda _: "192.0.2.7")
    assert ring._address_of("", known) == "192.0.2.7"


def test_no_two_ranks_send_the_same():
    assert ring._message(0) != ring._message(1)
    assert len(ring._message(0)) == ring._BYTES


@every_row(
    ("given", "expected"),
    [
        ({}, False),
        ({"HOROVOD_CONTROLLER": "gloo"}, False),
        ({"HOROVOD_CONTROLLER": "mpi", "HOROVOD_GLOO_RENDEZVOUS_ADDR": "x"}, False),
        ({"HOROVOD_CONTROLLER": "gloo", "HOROVOD_GLOO_RENDEZVOUS_ADDR": "x"}, True),
    ],
)
def test_ranks_that_gloo_wires_up_are_recognised(given, expected):
    assert ring.connect_ring(given) is expected


def test_the_preflight_checks_gloo_in_place_of_mpi(monkeypatch, capsys):
    with served(task()) as store:
        for name, value in variables(store, 0, 1).items():
            monkeypatch.setenv(name, value)
        assert preflight.main(["--tasks", "1"]) == 0
        assert capsys.readouterr().out.startswith(
            "preflight: 1 rank on 1 node, Gloo over lo; messages arrive ("
        )
        assert preflight.main(["--tasks", "2"]) == 1
    said = capsys.readouterr().err
    assert said == "preflight: Gloo finds a world of size 1, but 2 tasks were started.\n"
