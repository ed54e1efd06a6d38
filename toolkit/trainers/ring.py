"""Check what Gloo needs before a training: all ranks at the store, and messages from node to node over TCP.

Each rank sends half a megabyte to the next one, over the interface that Gloo will use. Neither TensorFlow nor
Horovod is loaded. What went wrong is gathered by rank 0, which speaks for all.
"""

import hashlib
import os
import socket
import threading
import time
from collections.abc import Iterable, Mapping
from http.client import HTTPConnection, HTTPException

from toolkit.trainers.gloo import interfaces

_BYTES = 1 << 19
_SCOPE = "preflight"
_PAUSE = 0.02
_TIME_TO_HEAR = 5.0
"""Seconds after the limit in which ranks in trouble are still heard."""


class Silence(Exception):
    """Nothing came in time, or the store is gone."""


class Board:
    """The store that the ranks share; what one writes, all can read."""

    def __init__(self, address: str, port: int, deadline: float) -> None:
        self._place, self._deadline = (address, port), deadline

    def write(self, key: str, text: str) -> None:
        """Write under a name; ``Silence`` if the store does not answer."""
        self._ask("PUT", key, text.encode())

    def read(self, key: str) -> str:
        """Wait until somebody has written under a name; ``Silence`` if nobody has in time."""
        while True:
            status, body = self._ask("GET", key)
            if status == 200:
                return body.decode()
            if time.monotonic() > self._deadline:
                raise Silence(key)
            time.sleep(_PAUSE)

    def _ask(self, method: str, key: str, body: bytes | None = None) -> tuple[int, bytes]:
        connection = HTTPConnection(*self._place, timeout=max(1.0, self._deadline - time.monotonic()))
        try:
            connection.request(method, f"/{_SCOPE}/{key}", body)
            answer = connection.getresponse()
            return answer.status, answer.read()
        except (OSError, HTTPException) as error:
            raise Silence(f"the store of rank 0 does not answer: {error}") from None
        finally:
            connection.close()


def check_ring(environment: Mapping[str, str], tasks: int, seconds: float) -> tuple[str, int, str]:
    """Return what is wrong, or nothing; on how many nodes the ranks are; and the interface of this one.

    ``environment`` is what :mod:`toolkit.trainers.gloo` gives a rank, ``seconds`` the limit for the messages.
    """
    rank, size = int(environment["HOROVOD_RANK"]), int(environment["HOROVOD_SIZE"])
    interface = environment.get("HOROVOD_GLOO_IFACE", "")
    if size != tasks:
        return f"Gloo finds a world of {size} where {tasks} tasks were started", 0, interface
    deadline = time.monotonic() + seconds
    address, port = environment["HOROVOD_GLOO_RENDEZVOUS_ADDR"], environment["HOROVOD_GLOO_RENDEZVOUS_PORT"]
    board = Board(address, int(port), deadline + _TIME_TO_HEAR)
    try:
        own = _address_of(interface, interfaces())
        found = "" if size == 1 else _pass_on(Board(address, int(port), deadline), rank, size, own, deadline)
    except (Silence, OSError, ValueError) as error:
        found = f"rank {rank} on {environment['HOROVOD_HOSTNAME']}: {error}"
    try:
        problem, nodes = _agree(board, rank, size, found, environment["HOROVOD_HOSTNAME"])
    except Silence:
        return found or f"not all ranks told rank 0 within {seconds:g} s how they fared", 0, interface
    return problem, nodes, interface


def _pass_on(board: Board, rank: int, size: int, address: str, deadline: float) -> str:
    """Send to the next rank, receive from the one before; return what is wrong."""
    left, right = (rank - 1) % size, (rank + 1) % size
    with socket.create_server((address, 0)) as door:
        host, port = door.getsockname()
        board.write(f"door-{rank}", f"{host} {port}")
        next_host, next_port = board.read(f"door-{right}").split()
        failed: list[str] = []
        sender = threading.Thread(
            target=_send, args=((next_host, int(next_port)), _message(rank), deadline, failed), daemon=True
        )
        sender.start()
        door.settimeout(max(0.1, deadline - time.monotonic()))
        try:
            connection, _ = door.accept()
            with connection:
                received = _receive(connection, deadline)
        except OSError:
            received = None
        sender.join(max(0.1, deadline - time.monotonic()))
    if failed:
        return f"rank {rank} cannot reach rank {right} at {next_host}: {failed[0]}"
    if received is None:
        return f"nothing came from rank {left} to rank {rank} at {host}"
    if received != _message(left):
        return f"what came from rank {left} to rank {rank} is not what was sent"
    return ""


def _agree(board: Board, rank: int, size: int, problem: str, host: str) -> tuple[str, int]:
    """Tell rank 0 how this rank fared; return what it makes of all, and the number of nodes."""
    board.write(f"result-{rank}", f"{host}\n{problem}")
    if rank == 0:
        told = [board.read(f"result-{other}").split("\n", 1) for other in range(size)]
        worst = next((said for _, said in told if said), "")
        board.write("verdict", f"{len({name for name, _ in told})}\n{worst}")
    nodes, worst = board.read("verdict").split("\n", 1)
    board.write(f"done-{rank}", "")
    if rank == 0:
        # The store ends with this rank; the others have to have read it.
        for other in range(size):
            board.read(f"done-{other}")
    return worst, int(nodes)


def _message(rank: int) -> bytes:
    """Return bytes that no other rank sends and that show where a piece is lost or swapped."""
    pieces = (hashlib.sha256(b"%d %d" % (rank, number)).digest() for number in range(_BYTES // 32))
    return b"".join(pieces)


def _send(place: tuple[str, int], message: bytes, deadline: float, failed: list[str]) -> None:
    try:
        with socket.create_connection(place, timeout=max(0.1, deadline - time.monotonic())) as connection:
            connection.sendall(message)
    except OSError as error:
        failed.append(error.strerror or str(error))


def _receive(connection: socket.socket, deadline: float) -> bytes:
    parts: list[bytes] = []
    while True:
        connection.settimeout(max(0.1, deadline - time.monotonic()))
        part = connection.recv(1 << 16)
        if not part or sum(map(len, parts)) > _BYTES:
            return b"".join(parts)
        parts.append(part)


def _address_of(interface: str, known: Iterable[tuple[str, str]]) -> str:
    """Return the address that Gloo will have: the first of its interface, else that of the host's name."""
    found = next((address for name, address in known if name == interface), "")
    return found or socket.gethostbyname(socket.gethostname())


def wired(environment: Mapping[str, str] = os.environ) -> bool:
    """Tell whether this rank is to find the others through Gloo."""
    return environment.get("HOROVOD_CONTROLLER") == "gloo" and "HOROVOD_GLOO_RENDEZVOUS_ADDR" in environment
