"""Test connections through the pipes of a program: toolkit's end of the tunnel and the real remote end."""

import ast
import contextlib
import socket
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.unit.tables import every_row
from toolkit.errors import BadInput, CheckFailed
from toolkit.run import relay
from toolkit.run.command import Command
from toolkit.run.local import LocalRunner
from toolkit.run.tunnel import Tunnel


@contextlib.contextmanager
def echoing(handle=None):
    def echo(connection):
        while content := connection.recv(1 << 16):
            connection.sendall(content)

    def serve():
        with contextlib.suppress(OSError):
            while True:
                connection, _ = server.accept()
                threading.Thread(target=answer, args=(connection,), daemon=True).start()

    def answer(connection):
        with connection, contextlib.suppress(OSError):
            (handle or echo)(connection)

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=serve, daemon=True).start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def tunnelled(port, before=""):
    words = ("sh", "-c", f'{before} exec "$@"', "sh", sys.executable, relay.__file__, str(port))
    far, tunnel, ready = LocalRunner().converse(Command(words)), Tunnel(), threading.Event()
    serving = threading.Thread(target=tunnel.serve, args=(far, ready.set))
    serving.start()
    assert ready.wait(20)
    try:
        yield tunnel.port
    finally:
        tunnel.close()
        far.close()
        serving.join(20)
        assert not serving.is_alive()


def whole(connection):
    return b"".join(iter(lambda: connection.recv(1 << 16), b""))


def said(port, content):
    with socket.create_connection(("127.0.0.1", port), 20) as connection:
        sender = threading.Thread(
            target=lambda: (connection.sendall(content), connection.shutdown(socket.SHUT_WR))
        )
        sender.start()
        answer = whole(connection)
        sender.join(20)
        return answer


def test_bytes_go_there_and_back_whole():
    content = bytes(range(256)) * 8000
    with echoing() as port, tunnelled(port) as near:
        assert said(near, content) == content


def test_many_connections_at_once_do_not_mix():
    with echoing() as port, tunnelled(port) as near:
        answers = {}
        threads = [
            threading.Thread(target=lambda n=n: answers.update({n: said(near, bytes([n]) * 100_000)}))
            for n in range(20)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert answers == {n: bytes([n]) * 100_000 for n in range(20)}


def test_one_that_is_not_read_does_not_stop_the_others():
    def flood(connection):
        if connection.recv(5) == b"flood":
            for _ in range(200):
                connection.sendall(b"x" * 100_000)
        else:
            connection.sendall(b"here")

    with (
        echoing(flood) as port,
        tunnelled(port) as near,
        socket.create_connection(("127.0.0.1", near), 20) as lazy,
    ):
        lazy.sendall(b"flood")
        time.sleep(0.3)
        assert said(near, b"other") == b"here"
        lazy.shutdown(socket.SHUT_WR)
        assert len(whole(lazy)) == 20_000_000


def test_an_end_that_came_is_told():
    with (
        echoing(lambda connection: connection.sendall(b"bye")) as port,
        tunnelled(port) as near,
        socket.create_connection(("127.0.0.1", near), 20) as connection,
    ):
        assert whole(connection) == b"bye"


def test_a_port_on_which_nobody_listens_ends_the_connection():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with tunnelled(port) as near:
        assert said(near, b"") == b""


def test_an_answer_that_comes_before_the_question_is_out_ends_the_connection():
    def answered_at_once(line):
        if line.split()[2].decode() == relay.OPEN:
            carried.hear(f"@ 1 {relay.GONE} ".encode())

    carried = relay.Connections(answered_at_once)
    near, person = socket.socketpair()
    with person:
        person.settimeout(20)
        carried.add(1, near, opened=False)
        assert whole(person) == b""


def test_banners_are_passed_over():
    before = "echo 'Welcome to the cluster'; echo '@ all: maintenance on Monday'; echo '@ 1 d !!!';"
    with echoing() as port, tunnelled(port, before) as near:
        assert said(near, b"hello") == b"hello"


def test_when_the_far_end_goes_the_connections_end():
    with echoing() as port:
        words = (sys.executable, relay.__file__, str(port))
        far, tunnel, ready = LocalRunner().converse(Command(words)), Tunnel(), threading.Event()
        serving = threading.Thread(target=tunnel.serve, args=(far, ready.set))
        serving.start()
        assert ready.wait(20)
        with socket.create_connection(("127.0.0.1", tunnel.port), 20) as connection:
            connection.sendall(b"a")
            assert connection.recv(1) == b"a"
            far.close()
            assert whole(connection) == b""
        serving.join(20)
        assert not serving.is_alive()
        # The tunnel still listens, because the remote end may return, but it closes new connections at once.
        assert said(tunnel.port, b"") == b""
        tunnel.close()


def test_a_far_end_that_does_not_start_is_told_with_its_words():
    far = LocalRunner().converse(Command(("sh", "-c", "echo 'srun: job is over' >&2; exit 1")))
    tunnel = Tunnel()
    with pytest.raises(CheckFailed) as raised:
        tunnel.serve(far)
    assert "srun: job is over" in raised.value.detail
    tunnel.close()
    far.close()


def test_a_port_that_is_taken_is_refused():
    with socket.create_server(("127.0.0.1", 0)) as server, pytest.raises(BadInput, match="--port"):
        Tunnel(server.getsockname()[1])


def test_it_listens_on_loopback_alone():
    tunnel = Tunnel()
    assert tunnel._socket.getsockname()[0] == "127.0.0.1"
    tunnel.close()


@every_row("line", [b"", b"@", b"@ x d", b"@ 1", b"@ 1 d %", b"@ -1 o", b"@ 1 o a b c", b"\xff"])
def test_noise_is_no_message(line):
    assert relay.Connections(lambda _: None).hear(line) == ("", 0)


def test_the_far_end_is_a_file_of_its_own_for_an_old_python():
    text = Path(relay.__file__).read_text()
    tree = ast.parse(text, feature_version=(3, 6))
    imported = {n.names[0].name for n in ast.walk(tree) if isinstance(n, ast.Import)}
    imported |= {n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
    assert imported <= sys.stdlib_module_names | {"collections.abc"}
    # Python 3.6 evaluates annotations when it reads the file and fails on subscripts and `|`.
    signatures = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)]
    spoken = [a.annotation for n in signatures for a in n.args.args] + [n.returns for n in signatures]
    assert not [n for n in spoken if isinstance(n, ast.Subscript | ast.BinOp)]
