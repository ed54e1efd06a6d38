"""Test the measurement of the speed between nodes: real TCP, and a fake MPI."""

import socket
import sys
import threading
import time
from types import ModuleType, SimpleNamespace

import pytest

from tests.unit.tables import every_row
from tests.unit.trainers.test_gloo import served, task
from toolkit.trainers.checks import links
from toolkit.trainers.checks.board import Board, Silence


@every_row("nodes", [2, 3])
def test_a_ring_of_nodes_measures_what_comes_from_the_one_before(monkeypatch, nodes):
    monkeypatch.setattr(links, "_SECONDS", 0.1)
    speeds = {}

    def run(number, port, path):
        deadline = time.monotonic() + 20
        board = Board(f"127.0.0.1/{path}", port, deadline)
        speeds[number] = links.over_tcp(board, number, nodes, "127.0.0.1", deadline)

    with served(task()) as store:
        threads = [
            threading.Thread(target=run, args=(number, store.server_address[1], store.path))
            for number in range(nodes)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(speeds) == nodes
    # The loopback interface is faster than 0.01 Gbit/s on every machine.
    assert all(0.01 < speed < 10_000 for speed in speeds.values())


def test_a_node_from_which_nothing_comes_is_an_error_in_time(monkeypatch):
    monkeypatch.setattr(links, "_pour", lambda *_: None)
    with served(task()) as store:
        deadline = time.monotonic() + 0.3
        board = Board("127.0.0.1", store.server_address[1], deadline)
        board.write("link-1", "127.0.0.1 9")
        with pytest.raises((Silence, OSError)):
            links.over_tcp(board, 0, 2, "127.0.0.1", deadline)


def test_what_is_poured_to_nobody_ends_quietly():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        place = listener.getsockname()
    begun = time.monotonic()
    links._pour(place, begun + 1)
    assert time.monotonic() - begun < 1


class Pair:
    """A fake MPI world of two nodes; a message of n bytes takes 8 n / ``gbit`` / 1e9 seconds."""

    def __init__(self, clock, gbit):
        self._clock, self._gbit, self.sizes = clock, gbit, []

    def Get_rank(self):  # noqa: N802 - mpi4py's name
        return 0

    def Get_size(self):  # noqa: N802 - mpi4py's name
        return 2

    def Barrier(self):  # noqa: N802 - mpi4py's name
        pass

    def Sendrecv(self, sent, to, recvbuf, source):  # noqa: N802 - mpi4py's name
        assert (to, source, len(sent)) == (1, 1, len(recvbuf))
        self.sizes.append(len(sent))
        self._clock[0] += len(sent) * 8 / self._gbit / 1e9

    def allreduce(self, took, op):
        return took


@every_row(("gbit", "largest"), [(0.01, 1 << 20), (1.0, 1 << 24), (1000.0, 1 << 26)])
def test_messages_grow_until_they_tell_the_speed(monkeypatch, gbit, largest):
    clock = [0.0]
    monkeypatch.setattr(links.time, "monotonic", lambda: clock[0])
    mpi = ModuleType("mpi4py")
    mpi.MPI = SimpleNamespace(MAX=None)
    monkeypatch.setitem(sys.modules, "mpi4py", mpi)
    pair = Pair(clock, gbit)
    assert links.over_mpi(pair) == pytest.approx(gbit, rel=1e-6)
    assert max(pair.sizes) == largest
