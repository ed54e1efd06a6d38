"""Test the Gloo rendezvous of ranks without MPI: Slurm's variables, rank 0's store, and the processes."""

import ast
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from http.client import HTTPConnection
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.tables import every_row
from toolkit.launch.jobscript.wrapper import gloo_program
from toolkit.trainers import gloo, rendezvous
from toolkit.trainers.gloo import RendezvousFault, Store, Task
from toolkit.trainers.rendezvous import proof

SECRET = b"s" * 64


JOB = str(os.getpid())
"""A unique job number, because ranks of parallel test runs with the same number would connect."""


def environment(rank=0, size=2, host="localhost", nodes="localhost,other", **more):
    """Return the variables of a task; every machine can resolve the first node's name."""
    return {
        "SLURM_JOB_ID": JOB,
        "SLURM_STEP_ID": "0",
        "SLURM_PROCID": str(rank),
        "SLURM_STEP_NUM_TASKS": str(size),
        "SLURM_LOCALID": "0",
        "SLURMD_NODENAME": host,
        "SLURM_STEP_NODELIST": nodes,
        **more,
    }


def task(rank=0, size=2, host="localhost", local=0, step="c/1.0/", first="localhost"):
    return Task(step, rank, size, local, host, first)


@contextlib.contextmanager
def served(own, port=0):
    store = Store(own, port, SECRET)
    store.owner = os.getppid()  # the store runs as a thread of this process, not in a child
    thread = threading.Thread(target=store.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield store
    finally:
        store.shutdown()
        store.server_close()
        thread.join()


def asked(store, method, path, body=None, headers=None):
    connection = HTTPConnection("127.0.0.1", store.server_address[1], timeout=5)
    with contextlib.closing(connection):
        connection.request(method, path, body, headers or {})
        answer = connection.getresponse()
        return answer.status, answer.read()


def below(store, path):
    """Return the path in the form that Horovod's HTTP client sends."""
    return f"/{gloo.path_of(SECRET, store.task.step)}:{store.server_address[1]}{path}"


# Slurm's variables


@every_row(
    ("nodes", "first"),
    [
        ("node1", "node1"),
        ("node[1-2]", "node1"),
        ("node[07,09-12],other", "node07"),
        ("rack[01-02]n[3,5],gpu7", "rack01n3"),
        ("n[1-2]-ib,m", "n1-ib"),
        ("a.site.example,b", "a.site.example"),
    ],
)
def test_the_first_node_of_a_list_is_found(nodes, first):
    assert gloo.first_node(nodes) == first


@every_row("nodes", ["", ",", "[", "[]", "n[", "-x", "a b", "$(id)", "n[1-2]\n", "ü", "/etc"])
def test_what_names_no_node_is_told(nodes):
    with pytest.raises(RendezvousFault, match="SLURM_STEP_NODELIST"):
        gloo.first_node(nodes)


@given(st.text(max_size=40))
def test_any_list_of_nodes_gives_a_name_or_a_sentence(nodes):
    with contextlib.suppress(RendezvousFault):
        assert rendezvous.NODE_NAME.fullmatch(gloo.first_node(nodes))


def test_a_task_is_read_from_what_slurm_sets():
    given = environment(
        rank=1, host="other", SLURM_LOCALID="3", SLURM_CLUSTER_NAME="hpc", SLURM_RESTART_COUNT="2"
    )
    assert gloo.read_task(given) == Task(f"hpc/{JOB}.0/2", 1, 2, 3, "other", "localhost")


@every_row("name", sorted(environment()))
def test_each_variable_that_is_missing_is_named(name):
    given = environment()
    del given[name]
    with pytest.raises(RendezvousFault, match=name):
        gloo.read_task(given)


@every_row("value", ["-1", "x", "", "1.0", "1 ", "\uff11", "9" * 30, "0x1"])
def test_what_is_no_number_is_told(value):
    with pytest.raises(RendezvousFault, match=r"SLURM_PROCID .*srun --mpi=none"):
        gloo.read_task(environment(SLURM_PROCID=value))


@every_row("name", ["", "a b", "../x", "n\n", "-n"])
def test_a_node_without_a_proper_name_is_told(name):
    with pytest.raises(RendezvousFault, match="SLURMD_NODENAME"):
        gloo.read_task(environment(host=name))


def test_a_rank_beyond_the_size_is_told():
    with pytest.raises(RendezvousFault, match="SLURM_PROCID is 2, but 2 tasks have the ranks 0 to 1"):
        gloo.read_task(environment(rank=2))


def test_ranks_that_were_dealt_out_from_another_node_are_told():
    with pytest.raises(
        RendezvousFault, match="task 0 runs on other, but the other tasks look for it on localhost"
    ):
        gloo.read_task(environment(host="other"))


def test_every_run_of_every_step_has_ports_of_its_own():
    runs = ["c/1.0/", "c/1.1/", "c/2.0/", "c/1.0/1", "d/1.0/"]
    ports = [gloo.ports_of(run) for run in runs]
    assert ports[0] == gloo.ports_of(runs[0])
    assert len({tuple(p) for p in ports}) == len(runs)
    assert all(16384 <= port < 32768 for some in ports for port in some)
    assert all(len(some) > 8 for some in ports)


# Ranks on nodes


def as_tuples(found):
    names = ("RANK", "SIZE", "LOCAL_RANK", "LOCAL_SIZE", "CROSS_RANK", "CROSS_SIZE")
    return [
        (place["HOROVOD_HOSTNAME"], *(int(place[f"HOROVOD_{n}"]) for n in names))
        for _, place in sorted(found.items())
    ]


def dealt(*hosts):
    """Return one task per given host; rank 0 is on the first host."""
    return [task(rank, len(hosts), host, hosts[:rank].count(host)) for rank, host in enumerate(hosts)]


@every_row(
    ("hosts", "expected"),
    [
        (["a"], [("a", 0, 1, 0, 1, 0, 1)]),
        (["a", "b"], [("a", 0, 2, 0, 1, 0, 2), ("b", 1, 2, 0, 1, 1, 2)]),
        (
            ["a", "a", "b", "b"],
            [
                ("a", 0, 4, 0, 2, 0, 2),
                ("a", 1, 4, 1, 2, 0, 2),
                ("b", 2, 4, 0, 2, 1, 2),
                ("b", 3, 4, 1, 2, 1, 2),
            ],
        ),
        (  # the order of srun --distribution=cyclic
            ["a", "b", "a"],
            [("a", 0, 3, 0, 2, 0, 2), ("b", 1, 3, 0, 1, 1, 2), ("a", 2, 3, 1, 2, 0, 1)],
        ),
        (  # nodes with different numbers of ranks
            ["a", "b", "b", "b", "c"],
            [
                ("a", 0, 5, 0, 1, 0, 3),
                ("b", 1, 5, 0, 3, 1, 3),
                ("b", 2, 5, 1, 3, 0, 1),
                ("b", 3, 5, 2, 3, 0, 1),
                ("c", 4, 5, 0, 1, 2, 3),
            ],
        ),
    ],
)
def test_places_are_those_of_horovodrun(hosts, expected):
    assert as_tuples(gloo.places(dealt(*hosts))) == expected


@given(st.lists(st.sampled_from("abcde"), min_size=1, max_size=40), st.randoms())
def test_places_fit_together_in_any_shape_and_order_of_coming(hosts, random):
    tasks = dealt(*hosts)
    random.shuffle(tasks)
    found = as_tuples(gloo.places(tasks))
    assert [(host, rank) for host, rank, *_ in found] == [(host, rank) for rank, host in enumerate(hosts)]
    for host in set(hosts):
        mine = [place for place in found if place[0] == host]
        assert [place[3] for place in mine] == list(range(len(mine)))
        assert {place[4] for place in mine} == {len(mine)}
    for local in {place[3] for place in found}:
        across = [place for place in found if place[3] == local]
        assert sorted(place[5] for place in across) == list(range(len(across)))
        assert {place[6] for place in across} == {len(across)}


# The store


def test_rank_0_is_told_last_as_the_store_ends_with_it():
    store = Store(task(), 0, SECRET)
    with contextlib.closing(store.socket):
        assert store.greet(task(), "127.0.0.1")["absent"] == "1"
        other = store.greet(task(1, host="other"), "10.0.0.1")
        assert other["place"]["HOROVOD_RANK"] == "1"
        assert other["reached"] == "10.0.0.1"
        assert store.greet(task(), "127.0.0.1")["place"]["HOROVOD_RANK"] == "0"


def test_rank_0_waits_until_others_know_their_place():
    store = Store(task(), 0, SECRET)
    with contextlib.closing(store.socket):
        store.greet(task(1, size=2), "127.0.0.1")
        assert store.greet(task(), "127.0.0.1")["absent"] == "1"
        assert "place" in store.greet(task(1, size=2), "127.0.0.1")
        assert "place" in store.greet(task(), "127.0.0.1")


def test_no_more_than_a_few_that_are_absent_are_listed():
    store = Store(task(size=1000), 0, SECRET)
    with contextlib.closing(store.socket):
        assert store.greet(task(size=1000), "127.0.0.1")["absent"] == "1, 2, 3, 4, 5, 6, 7, 8, …"


@every_row("other", [task(step="c/2.0/"), task(2, 2), task(7, 9, step="c/1.0/1")])
def test_a_rank_of_another_step_is_told_nothing(other):
    store = Store(task(), 0, SECRET)
    with contextlib.closing(store.socket):
        assert store.greet(other, "127.0.0.1") == {"step": "c/1.0/"}
        assert store.tasks == {}


@every_row("other", [task(1, host="third"), task(1, size=3, host="other")])
def test_two_that_cannot_both_be_there_are_told(other):
    store = Store(task(), 0, SECRET)
    with contextlib.closing(store.socket):
        assert "trouble" not in store.greet(task(1, host="other") if other.size == 2 else task(), "127.0.0.1")
        assert (
            " contradicts "
            in store.greet(other._replace(rank=other.rank if other.size == 2 else 0), "x")["trouble"]
        )


def test_what_a_rank_puts_others_get_until_all_have_left():
    with served(task()) as store:
        assert asked(store, "GET", below(store, "/global/0")) == (404, b"")
        assert asked(store, "PUT", below(store, "/global/0"), b"\0one")[0] == 200
        assert asked(store, "PUT", below(store, "/global/1"), b"two")[0] == 200
        assert asked(store, "DELETE", below(store, "/global/0"))[0] == 200
        assert asked(store, "GET", below(store, "/global/0")) == (200, b"\0one")
        asked(store, "DELETE", below(store, "/global/0"))  # a second DELETE of one rank counts once
        assert asked(store, "GET", below(store, "/global/1")) == (200, b"two")
        assert asked(store, "DELETE", below(store, "/global/1"))[0] == 200
        assert asked(store, "GET", below(store, "/global/0")) == (404, b"")
        asked(store, "PUT", below(store, "/global/0"), b"again")
        assert asked(store, "GET", below(store, "/global/0")) == (200, b"again")


@every_row("length", ["x", "-1", "", "99999999999999999999", str(gloo._LARGEST + 1)])
def test_a_value_of_no_sensible_length_is_refused(length):
    with served(task()) as store:
        assert asked(store, "PUT", below(store, "/a/b"), None, {"Content-Length": length})[0] == 400


@every_row(
    "body",
    [b"", b"[]", b"{}", b"nonsense", b'{"step": 1}', json.dumps({**task()._asdict(), "rank": "0"}).encode()],
)
def test_whoever_says_something_else_than_hello_gets_nothing(body):
    headers = {gloo._NONCE: "n", gloo._PROOF: proof(SECRET, b"hello", b"n", body)}
    with served(task()) as store:
        assert asked(store, "PUT", "/toolkit/hello", body, headers) == (200, b"{}")
        assert store.tasks == {}


@every_row("headers", [{}, {gloo._PROOF: "", gloo._NONCE: ""}, {gloo._PROOF: "0" * 64}])
def test_a_process_that_knows_only_the_job_gets_no_place_and_reads_and_writes_nothing(headers):
    other = json.dumps(task(1, host="other")._asdict()).encode()
    with served(task()) as store:
        assert asked(store, "PUT", "/toolkit/hello", other, headers) == (403, b"")
        wrong = proof(b"w" * 64, b"hello", b"n", other)
        assert asked(store, "PUT", "/toolkit/hello", other, {gloo._NONCE: "n", gloo._PROOF: wrong})[0] == 403
        assert store.tasks == {}
        store.values["global"] = {"0": b"secret"}
        for path in (
            "/global/0",
            f"/{'0' * 64}:{store.server_address[1]}/global/0",
            "/toolkit/0",
            "/",
            "//x",
        ):
            assert asked(store, "GET", path, None, headers) == (404, b"")
            assert asked(store, "PUT", path, b"poison", headers) == (404, b"")
            assert asked(store, "DELETE", path, None, headers) == (404, b"")
        assert store.values == {"global": {"0": b"secret"}}


def test_a_store_that_does_not_know_the_secret_is_passed_by():
    with served(task(size=1)) as store:
        store.secret = b"w" * 64
        assert gloo._hello(("127.0.0.1", store.server_address[1]), task(size=1), SECRET) == ({}, "")


def test_an_answer_is_good_for_its_own_question_alone():
    with served(task(size=1)) as store, pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            gloo,
            "proves",
            lambda said, secret, kind, nonce, body: (
                kind == b"hello" or said == proof(secret, kind, b"another" + nonce, body)
            ),
        )
        assert gloo._hello(("127.0.0.1", store.server_address[1]), task(size=1), SECRET) == ({}, "")


@every_row("path", ["/", "//", "/a", "x"])
def test_odd_paths_are_answered(path):
    with served(task()) as store:
        assert asked(store, "GET", path)[0] == 404
        assert asked(store, "DELETE", path)[0] == 404


def test_the_store_listens_at_the_one_address_that_others_are_told(monkeypatch):
    monkeypatch.setattr(rendezvous, "interfaces", lambda: [("lo", "127.0.0.1"), ("ib0", "10.0.0.1")])
    assert rendezvous.listening_address("localhost", "10.0.0.1", alone=False) == "10.0.0.1"
    assert rendezvous.listening_address("localhost", "10.0.0.9", alone=False) == ""
    assert rendezvous.listening_address("localhost", "10.0.0.1", alone=True) == "127.0.0.1"
    with contextlib.closing(Store(task(), 0, SECRET, "127.0.0.1").socket) as bound:
        assert bound.getsockname()[0] == "127.0.0.1"


def test_a_port_that_is_taken_is_passed_over():
    with socket.create_server(("", 0)) as taken, socket.create_server(("", 0)) as free:
        ports = [taken.getsockname()[1], free.getsockname()[1]]
        free.close()
        store = gloo.open_store(task(), ports, SECRET)
        store.server_close()
        assert store.server_address[1] == ports[1]


def test_that_all_ports_are_taken_is_told():
    with socket.create_server(("", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(
            RendezvousFault, match=rf"none of these ports .* on localhost: \[{port}\] \(.*in use"
        ):
            gloo.open_store(task(), [port], SECRET)


# The search for the store


def test_ranks_of_several_nodes_meet():
    with served(task()) as store:
        ports = [store.server_address[1]]
        with contextlib.ExitStack() as stack:
            found = {}

            def meet(own):
                found[own.rank] = gloo.join(own, ports, "", 10, SECRET)

            ranks = [threading.Thread(target=meet, args=(own,)) for own in (task(), task(1, host="other"))]
            for rank in ranks:
                rank.start()
                stack.callback(rank.join)
        assert [found[rank][0]["HOROVOD_CROSS_RANK"] for rank in (0, 1)] == ["0", "1"]
        assert {own for _, own, _ in found.values()} == {"127.0.0.1"}


def test_what_serves_another_step_is_passed_by():
    with served(task(step="c/9.0/")) as foreign, served(task(size=1)) as own:
        ports = [foreign.server_address[1], own.server_address[1]]
        _, _, (_, port) = gloo.join(task(size=1), ports, "", 10, SECRET)
        assert port == ports[1]
        assert foreign.tasks == {}


def test_what_is_no_store_is_passed_by():
    with socket.create_server(("127.0.0.1", 0)) as mute, served(task(size=1)) as own:

        def rude():
            with contextlib.suppress(OSError):
                connection, _ = mute.accept()
                with connection:
                    connection.sendall(b"220 mail.example ESMTP\r\n")

        thread = threading.Thread(target=rude, daemon=True)
        thread.start()
        ports = [mute.getsockname()[1], own.server_address[1]]
        assert gloo.join(task(size=1), ports, "", 10, SECRET)[2] == ("127.0.0.1", ports[1])
        thread.join(5)


def test_that_the_store_is_not_found_is_told(monkeypatch):
    monkeypatch.setattr(gloo, "_TIME_TO_SPEAK", 0.0)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(
        RendezvousFault,
        match=r"rank 1 on other did not find rank 0 within 0 s: no rank of this step answers .* firewall",
    ):
        gloo.join(task(1, host="other"), [port], "", 0, SECRET)


def test_a_name_that_is_not_known_is_told(monkeypatch):
    monkeypatch.setattr(gloo, "_TIME_TO_SPEAK", 0.0)
    lost = task(1, host="other", first="no-such-node.invalid")
    with pytest.raises(RendezvousFault, match=r"no IPv4 address for the name no-such-node.invalid"):
        gloo.join(lost, [1], "", 0, SECRET)


def test_where_names_are_not_known_the_node_that_called_srun_is_asked():
    with served(task(size=2)) as store:
        ports = [store.server_address[1]]
        store.greet(task(size=2), "127.0.0.1")
        lost = task(1, host="other", first="no-such-node.invalid")
        assert gloo.join(lost, ports, "127.0.0.1", 5, SECRET)[0]["HOROVOD_RANK"] == "1"


@every_row("caller", ["", "::1", "login node", "1.2.3", "$(id)"])
def test_only_an_ipv4_address_of_the_caller_is_taken(caller):
    hosts, _ = gloo._hosts(task(1, host="other"), caller)
    assert hosts == ["127.0.0.1"]


def test_who_did_not_come_is_told():
    with served(task(size=3)) as store:
        store.greet(task(1, 3, "other"), "10.0.0.1")
        with pytest.raises(RendezvousFault, match=r"^rank 2 did not reach rank 0 on localhost within 0 s$"):
            gloo.join(task(size=3), [store.server_address[1]], "", 0, SECRET)


def test_that_rank_0_has_gone_is_told(monkeypatch):
    monkeypatch.setattr(gloo, "_GONE_SECONDS", 0.2)
    with served(task(size=3)) as store:
        port = store.server_address[1]
        threading.Timer(0.3, lambda: (store.shutdown(), store.socket.close())).start()
        with pytest.raises(RendezvousFault, match="rank 0 on localhost exited"):
            gloo.join(task(1, 3, "other"), [port], "", 20, SECRET)


def test_what_contradicts_another_rank_is_told():
    with served(task()) as store:
        store.greet(task(1, host="third"), "127.0.0.1")
        with pytest.raises(RendezvousFault, match=" contradicts "):
            gloo.join(task(1, host="other"), [store.server_address[1]], "", 5, SECRET)


# Interfaces


def test_the_interface_is_the_one_whose_first_address_it_is():
    known = [("lo", "127.0.0.1"), ("lo", "10.9.9.9"), ("ib0", "10.0.0.1"), ("eth0", "192.0.2.1")]
    assert gloo.interface_of("10.0.0.1", known) == "ib0"
    assert gloo.interface_of("127.0.0.1", known) == "lo"
    assert gloo.interface_of("10.9.9.9", known) == ""
    assert gloo.interface_of("203.0.113.1", known) == ""


def test_this_machine_has_a_loopback():
    assert ("lo", "127.0.0.1") in gloo.interfaces()


@pytest.fixture
def job(tmp_path):
    (tmp_path / ".secret").write_bytes(SECRET)
    (tmp_path / ".secret").chmod(0o600)
    return {"TOOLKIT_JOB_DIR": str(tmp_path)}


def test_ranks_beside_rank_0_take_the_address_that_other_nodes_came_to(monkeypatch, job):
    monkeypatch.setattr(gloo, "interfaces", lambda: [("lo", "127.0.0.1"), ("ib0", "10.0.0.1")])
    place = {"HOROVOD_RANK": "1"}
    monkeypatch.setattr(gloo, "_hello", lambda *_: ({"place": place, "reached": "10.0.0.1"}, "127.0.0.1"))
    assert gloo.gloo_variables(task(1, 3), job)["HOROVOD_GLOO_IFACE"] == "ib0"
    assert gloo.gloo_variables(task(1, 3, host="other"), job)["HOROVOD_GLOO_IFACE"] == "lo"


def test_what_a_person_sets_counts(monkeypatch, job):
    monkeypatch.setattr(gloo, "_hello", lambda *_: ({"place": {}, "reached": ""}, "203.0.113.1"))
    assert "HOROVOD_GLOO_IFACE" not in gloo.gloo_variables(task(1), job)
    given = {**job, "HOROVOD_GLOO_IFACE": "hsn0", "HOROVOD_GLOO_TIMEOUT_SECONDS": "7"}
    assert {*given.items()} - {*job.items()} <= {*gloo.gloo_variables(task(1), given).items()}
    with pytest.raises(RendezvousFault, match="HOROVOD_START_TIMEOUT"):
        gloo.gloo_variables(task(1), {"HOROVOD_START_TIMEOUT": "soon"})


# Processes


def started(variables, *command, **more):
    words = [sys.executable, "-I", "-S", "-c", gloo_program(), "--", *command]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(words, env={"PATH": os.environ["PATH"], **variables}, **pipes, **more)


def together(size, *command, **more):
    ranks = [
        started(environment(rank, size, nodes="localhost", SLURM_LOCALID=str(rank), **more), *command)
        for rank in range(size)
    ]
    return [(*rank.communicate(timeout=60), rank.returncode) for rank in ranks]


def test_each_rank_becomes_its_command_with_its_own_exit_code():
    ended = together(
        3, "sh", "-c", "echo $HOROVOD_RANK of $HOROVOD_SIZE over $HOROVOD_GLOO_IFACE; exit $HOROVOD_RANK"
    )
    assert ended == [(f"{rank} of 3 over lo\n", "", rank) for rank in range(3)]


def test_a_command_that_is_not_there_is_told(tmp_path, monkeypatch):
    assert together(1, "no-such-command") == [("", "gloo: the image has no command no-such-command\n", 127)]
    (tmp_path / "no-such-command").mkdir()  # as in a folder that the user may not read
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert together(1, "no-such-command") == [("", "gloo: the image has no command no-such-command\n", 127)]
    out, err, code = together(1, "/")[0]
    assert (out, code) == ("", 126)
    assert err.startswith("gloo: / cannot be started: ")


@every_row("words", [[], ["--"], ["python"], ["--seconds", "1"]])
def test_a_wrong_call_is_told(words, capsys):
    assert gloo.main(words) == 2
    assert capsys.readouterr().err == "gloo: usage: python -m toolkit.trainers.gloo -- COMMAND\n"


def test_without_slurm_it_says_so_in_one_line():
    rank = started({}, "true")
    out, err = rank.communicate(timeout=30)
    assert (out, rank.returncode) == ("", 1)
    assert (
        err == "gloo: SLURM_PROCID is not set; start the ranks with srun --mpi=none, "
        "and keep Slurm's environment variables\n"
    )


def test_other_ranks_leave_the_word_to_rank_0(monkeypatch, capsys):
    slept = []
    monkeypatch.setattr(time, "sleep", slept.append)
    for name, value in environment(rank=1, host="").items():
        monkeypatch.setenv(name, value)
    assert gloo.main(["--", "true"]) == 1
    assert slept == [gloo._TIME_TO_SPEAK]
    assert "SLURMD_NODENAME" in capsys.readouterr().err


def test_a_rank_that_never_comes_ends_the_others_in_time(tmp_path):
    rank = started(environment(size=2, HOROVOD_START_TIMEOUT="1", TOOLKIT_JOB_DIR=str(tmp_path)), "true")
    _, err = rank.communicate(timeout=30)
    assert (err, rank.returncode) == ("gloo: rank 1 did not reach rank 0 on localhost within 1 s\n", 1)


def _serving(pid):
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def test_rank_0_gets_signals_as_any_rank_and_its_store_ends_with_it():
    code = (
        "import signal, sys, time\n"
        "got = []\n"
        "signal.signal(signal.SIGTERM, lambda *_: got.append(1))\n"
        "print('ready', flush=True)\n"
        "late = time.monotonic() + 20\n"
        "while not got and time.monotonic() < late:\n"
        "    time.sleep(0.05)\n"
        "time.sleep(0.5)\n"
        "sys.exit(40 + len(got))"
    )
    # Like Slurm, the test sends the signal to the whole process group, including the store.
    rank = started(environment(size=1, nodes="localhost"), sys.executable, "-c", code, start_new_session=True)
    assert rank.stdout.readline() == "ready\n"
    (store,) = _serving(rank.pid)
    os.killpg(rank.pid, signal.SIGTERM)
    rank.communicate(timeout=30)
    assert rank.returncode == 41
    deadline = time.monotonic() + 20
    while Path(f"/proc/{store}").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not Path(f"/proc/{store}").exists()


def test_a_broken_pipe_ends_the_command_as_a_shell_would_have_it():
    ended = together(1, "sh", "-c", "yes | head -1 > /dev/null; kill -PIPE $$")
    assert ended[0][2] == -signal.SIGPIPE


def test_the_file_runs_on_old_pythons_without_anything_else():
    tree = ast.parse(gloo_program(), feature_version=(3, 8))
    imported = {n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
    imported |= {alias.name for n in ast.walk(tree) if isinstance(n, ast.Import) for alias in n.names}
    assert {name.split(".")[0] for name in imported} <= set(sys.stdlib_module_names)


# The secret


def test_ranks_of_an_old_script_meet_by_a_secret_that_rank_0_makes(tmp_path):
    ended = together(2, "sh", "-c", "echo $HOROVOD_SIZE", TOOLKIT_JOB_DIR=str(tmp_path))
    assert ended == [("2\n", "", 0)] * 2
    (made,) = tmp_path.iterdir()
    assert made.stat().st_mode & 0o777 == 0o600


def test_several_nodes_without_a_folder_of_the_job_are_refused():
    with pytest.raises(RendezvousFault, match="need a shared folder for the secret"):
        rendezvous.secret_of({}, "run", first=True, alone=False)


@every_row("mode", [0o644, 0o660, 0o604])
def test_a_secret_that_others_may_read_is_refused(tmp_path, mode):
    (tmp_path / ".secret").write_bytes(SECRET)
    (tmp_path / ".secret").chmod(mode)
    with pytest.raises(RendezvousFault, match="other users can read or change it"):
        rendezvous.secret_of({"TOOLKIT_JOB_DIR": str(tmp_path)}, "run", first=True, alone=False)


def test_a_secret_behind_a_link_or_too_short_is_refused(tmp_path):
    (tmp_path / "elsewhere").write_bytes(SECRET)
    (tmp_path / ".secret").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RendezvousFault, match=r"\.secret: "):
        rendezvous.secret_of({"TOOLKIT_JOB_DIR": str(tmp_path)}, "run", first=True, alone=False)
    (tmp_path / ".secret").unlink()
    (tmp_path / ".secret").write_bytes(b"short")
    (tmp_path / ".secret").chmod(0o600)
    with pytest.raises(RendezvousFault, match="shorter than 32 bytes"):
        rendezvous.secret_of({"TOOLKIT_JOB_DIR": str(tmp_path)}, "run", first=True, alone=False)


def test_horovods_client_finds_the_keys_below_the_path(job):
    """Horovod's HTTPRequest.hpp takes the path after the first slash, and the port after the first colon."""
    given = environment(size=1, nodes="localhost", **job)
    with pytest.MonkeyPatch.context() as patch:
        stores = []
        patch.setattr(gloo, "serve_beside", stores.append)
        patch.setattr(gloo, "_hello", lambda *_: ({"place": {}, "reached": ""}, "127.0.0.1"))
        wired = gloo.gloo_variables(gloo.read_task(given), given)
    (store,) = stores
    store.owner = os.getppid()
    threading.Thread(target=store.serve_forever, args=(0.01,), daemon=True).start()
    address, port = wired["HOROVOD_GLOO_RENDEZVOUS_ADDR"], wired["HOROVOD_GLOO_RENDEZVOUS_PORT"]
    domain, _, path = f"{address}:{port}/global_/0".partition("/")
    host, _, number = domain.partition(":")
    with contextlib.closing(HTTPConnection(host, int(number), timeout=5)) as connection:
        connection.request("PUT", f"/{path}", b"value")
        assert connection.getresponse().status == 200
    assert store.values == {"global_": {"0": b"value"}}
    store.shutdown()
    store.server_close()
