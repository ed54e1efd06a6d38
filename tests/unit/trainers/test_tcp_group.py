"""Test that ranks exchange values over TCP, and that the loss of a rank ends the others."""

import json
import pickle
import socket
import struct
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tests.unit.tables import every_row
from toolkit.trainers.ranks import tcp_group
from toolkit.trainers.ranks.peers import RankPlace
from toolkit.trainers.ranks.tcp_group import TcpGroup
from toolkit.trainers.strategies.tcp_world import pack_arrays, unpack_arrays, unpickle
from toolkit.trainers.training.checkpoint import EpochPart
from toolkit.trainers.trouble import Trouble


def place(name, rank, size, secret=b"s" * 64):
    return RankPlace(name, rank, size, f"node{rank // 2}", ("127.0.0.1",), secret)


def met(name, size, order=None):
    with ThreadPoolExecutor(size) as pool:
        came = {rank: pool.submit(TcpGroup, place(name, rank, size), 20.0) for rank in order or range(size)}
        return [came[rank].result() for rank in range(size)]


def everywhere(groups, what):
    with ThreadPoolExecutor(len(groups)) as pool:
        return list(pool.map(what, groups))


@every_row("size", [1, 2, 5])
def test_all_ranks_get_the_values_of_all_in_their_order(size):
    groups = met(f"gather/{size}", size, order=reversed(range(size)))
    for values in everywhere(groups, lambda one: one.gather(b"x" * one.rank)):
        assert values == [b"x" * rank for rank in range(size)]
    assert (
        everywhere(groups, lambda one: one.broadcast(b"root" if one.rank == 0 else b"")) == [b"root"] * size
    )
    everywhere(groups, TcpGroup.end)


def test_members_are_told_with_their_nodes_and_addresses():
    groups = met("members", 3)
    told = [[(one.host, one.address) for one in each.members] for each in groups]
    assert told == [[("node0", "127.0.0.1"), ("node0", "127.0.0.1"), ("node1", "127.0.0.1")]] * 3
    everywhere(groups, TcpGroup.end)


def test_two_jobs_whose_ports_are_the_same_do_not_mix(monkeypatch):
    ports = []
    for _ in range(2):
        with socket.create_server(("", 0)) as free:
            ports.append(free.getsockname()[1])
    monkeypatch.setattr(RankPlace, "ports", property(lambda _: ports))
    with ThreadPoolExecutor(2) as pool:
        one, other = pool.map(lambda name: met(name, 2), ["one", "other"])
    assert everywhere(one, lambda m: m.gather(b"1")) == [[b"1", b"1"]] * 2
    assert everywhere(other, lambda m: m.gather(b"2")) == [[b"2", b"2"]] * 2
    everywhere([*one, *other], TcpGroup.end)


def test_strangers_are_sent_away():
    with ThreadPoolExecutor(3) as pool:
        root = pool.submit(TcpGroup, place("strangers", 0, 2), 20.0)
        port = place("strangers", 0, 2).ports[0]
        for said in (b"GET / HTTP/1.0\r\n\r\n", struct.pack(">I", 1 << 30), struct.pack(">I", 2) + b"{}"):
            for _ in range(100):
                try:
                    with socket.create_connection(("127.0.0.1", port), timeout=5) as stranger:
                        stranger.sendall(said)
                        assert stranger.recv(100) == b""
                    break
                except ConnectionRefusedError:
                    time.sleep(0.05)
                except OSError:
                    break
        other = pool.submit(TcpGroup, place("strangers", 1, 2), 20.0)
        groups = [root.result(), other.result()]
    assert everywhere(groups, lambda one: one.gather(b"a")) == [[b"a", b"a"]] * 2
    everywhere(groups, TcpGroup.end)


def test_a_process_that_knows_only_the_job_is_no_rank():
    """Every user can read the run, size and rank in Slurm's queue, so a rank must also know the secret."""
    root_place = place("poison", 0, 2)
    hello = {"run": "poison", "rank": 1, "size": 2, "host": "node0"}
    with ThreadPoolExecutor(2) as pool:
        root = pool.submit(TcpGroup, root_place, 20.0)
        deadline = time.monotonic() + 10
        while True:
            try:
                stranger = socket.create_connection(("127.0.0.1", root_place.ports[0]), timeout=5)
                break
            except ConnectionRefusedError:
                assert time.monotonic() < deadline
                time.sleep(0.05)
        with stranger:
            tcp_group._answer(stranger, hello)
            answer = json.loads(tcp_group._short(stranger))
            assert set(answer) == {"run", "nonce", "proof"}
            tcp_group._answer(stranger, {"proof": answer["proof"]})
            assert stranger.recv(100) == b""
        wrong = pool.submit(TcpGroup, place("poison", 1, 2, b"w" * 64), 0.3)
        with pytest.raises(Trouble, match="rank 1 on node0 did not find rank 0"):
            wrong.result()
        assert not root.done()
        other = pool.submit(TcpGroup, place("poison", 1, 2), 20.0)
        groups = [root.result(), other.result()]
    everywhere(groups, TcpGroup.end)


def test_who_does_not_come_is_named():
    with pytest.raises(Trouble, match=r"rank 1, 2 did not reach rank 0 on node0 within 0\.2 s"):
        TcpGroup(place("absent", 0, 3), 0.2)
    with pytest.raises(Trouble, match=r"rank 2 on node1 did not find rank 0 at 127\.0\.0\.1 within 0\.2 s"):
        TcpGroup(place("alone", 2, 3), 0.2)


RANK = """
import sys, time
from toolkit.trainers.ranks import tcp_group
from toolkit.trainers.ranks.peers import RankPlace
tcp_group._TIME_TO_SPEAK = 0.2
rank, how = int(sys.argv[1]), sys.argv[2]
one = tcp_group.TcpGroup(RankPlace(sys.argv[3], rank, 3, f"node{rank}", ("127.0.0.1",), b"s" * 64), 20.0)
one.gather(b"")
print("met", flush=True)
if how == "fail":
    one.fail(7)
time.sleep(60)
"""


EARLY = """
import sys
from toolkit.trainers.ranks import tcp_group
from toolkit.trainers.ranks.peers import RankPlace
tcp_group._TIME_TO_SPEAK = 0.2
rank = int(sys.argv[1])
print("up", flush=True)
sys.stdin.readline()
place = RankPlace("early", rank, 3, f"node{rank}", ("127.0.0.1",), b"s" * 64)
tcp_group.TcpGroup(place, 1.5 if rank == 0 else 20.0)
"""


def test_those_who_came_are_sent_home_when_others_do_not_and_rank_0_alone_speaks():
    words, pipe = [sys.executable, "-c", EARLY], subprocess.PIPE
    both = [
        subprocess.Popen([*words, str(rank)], stdin=pipe, stdout=pipe, stderr=pipe, text=True)
        for rank in (0, 1)
    ]
    assert [one.stdout.readline() for one in both] == ["up\n", "up\n"]
    for one in both:
        one.stdin.write("go\n")
        one.stdin.flush()
    first, other = (one.communicate(timeout=20)[1] for one in both)
    assert "rank 2 did not reach rank 0 on node0 within 1.5 s" in first
    assert other == ""
    assert both[1].returncode == 1


def processes(name, failing):
    return [
        subprocess.Popen(
            [sys.executable, "-c", RANK, str(rank), "fail" if rank == failing else "stay", name],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(3)
    ]


@every_row("killed", [0, 2])
def test_a_rank_that_is_killed_ends_all_others_and_is_told(killed):
    ranks = processes(f"killed/{killed}", None)
    for one in ranks:
        assert one.stdout.readline() == "met\n"
    ranks[killed].kill()
    begun = time.monotonic()
    said = [one.communicate(timeout=20)[1] for one in ranks]
    assert time.monotonic() - begun < 10
    assert all(one.returncode for one in ranks)
    assert f"rank {killed} on node{killed} is lost" in "".join(said)


@every_row("failing", [0, 1])
def test_a_rank_that_fails_ends_all_with_its_code_and_nobody_else_speaks(failing):
    ranks = processes(f"failing/{failing}", failing)
    said = [one.communicate(timeout=20)[1] for one in ranks]
    assert [one.returncode for one in ranks] == [7, 7, 7]
    assert said == ["", "", ""]


def test_what_ranks_tell_each_other_is_values_and_data_classes_and_no_functions():
    part = EpochPart(images=7, loss=0.5)
    assert unpickle(pickle.dumps({"a": (1, 2.5, None, [part])})) == {"a": (1, 2.5, None, [part])}
    for bad in (print, time.sleep, tcp_group.TcpGroup, np.float64(1)):
        with pytest.raises(pickle.UnpicklingError, match="is not a type that ranks exchange"):
            unpickle(pickle.dumps(bad))


def test_arrays_go_through_bytes():
    arrays = [np.arange(6, dtype="int64").reshape(2, 3), np.float32(0.5), np.zeros((0, 3), "float16")]
    again = unpack_arrays(pack_arrays(arrays))
    assert [one.dtype for one in again] == [np.dtype("int64"), np.dtype("float32"), np.dtype("float16")]
    assert all(np.array_equal(one, other) for one, other in zip(arrays, again, strict=True))
