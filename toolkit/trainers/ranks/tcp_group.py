"""Connect ranks over TCP without MPI, to exchange small messages and to detect a lost rank.

Rank 0 listens on a port, and each other rank keeps a connection to rank 0 during the job. Rank 0 forwards
messages to all ranks. Before a rank leaves the group, it sends a closing message. If a connection closes
without this message, the rank at the other end is lost (its process or node has failed), and all ranks stop.

Both ends of a connection first prove with an HMAC that they know the job's secret. The ranks do not encrypt
their messages.

Messages are bytes; :mod:`toolkit.trainers.strategies.tcp_world` defines the content of the messages.
"""

import json
import os
import queue
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

from toolkit.trainers.ranks.peers import RankPlace
from toolkit.trainers.rendezvous import proof, proves
from toolkit.trainers.trouble import Trouble

SECONDS = 240.0
"""The number of seconds within which all ranks must join. Nodes may need minutes to mount an image and to
load TensorFlow.
"""

_ANSWER_SECONDS = 5.0
_TIME_TO_SPEAK = 3.0
"""The number of seconds for which the other ranks delay their exit after a rank failed, so that the failed
rank can report its fault first.
"""

_LARGEST_HELLO = 4096
_HEAD = struct.Struct(">cQ")
_DATA, _BYE, _FAIL = b"d", b"b", b"f"


@dataclass(frozen=True, slots=True)
class Member:
    """The name of a rank's node, and the address at which other ranks reach the node."""

    host: str
    address: str


class TcpGroup:
    """The group of all ranks of a job, with methods to exchange messages. All ranks must call the methods of
    this class in the same order.
    """

    def __init__(self, place: RankPlace, seconds: float = SECONDS) -> None:
        """Connect this rank to rank 0. On rank 0, accept the connections of all other ranks.

        Raises:
            Trouble: if not all ranks join within ``seconds``.
        """
        self.rank, self.size = place.rank, place.size
        self._links: dict[int, Link] = {}
        self._done = False
        self.over = threading.Event()
        """An event that toolkit sets when another rank has failed or is lost, shortly before this
        rank exits.
        """
        if place.rank == 0:
            self._links = _receive(place, seconds, self._lost)
            # Ranks on rank 0's node may connect to 127.0.0.1, which ranks on other nodes cannot reach.
            # So take the address of rank 0's node from the connection of a rank on another node.
            reached = next(
                (one.reached for one in self._links.values() if one.host != place.host), "127.0.0.1"
            )
            members = [Member(place.host, reached)]
            for rank in range(1, place.size):
                one = self._links[rank]
                members.append(Member(one.host, reached if one.host == place.host else one.address))
            told = json.dumps([[one.host, one.address] for one in members]).encode()
            for link in self._links.values():
                link.send(_DATA, told)
            self.members = members
        else:
            self._links = {0: _reach(place, seconds, self._lost)}
            self.members = [Member(*one) for one in json.loads(self._links[0].take())]

    def gather(self, value: bytes) -> list[bytes]:
        """Send ``value`` to all ranks, and return the values of all ranks in rank order. The result is the
        same on every rank.
        """
        if self.rank:
            self._links[0].send(_DATA, value)
            return _unpack(self._links[0].take())
        values = [value, *(self._links[rank].take() for rank in range(1, self.size))]
        packed = _pack(values)
        for link in self._links.values():
            link.send(_DATA, packed)
        return values

    def broadcast(self, value: bytes) -> bytes:
        """Return rank 0's ``value`` on every rank. This method ignores the ``value`` of other ranks."""
        if self.rank:
            return self._links[0].take()
        for link in self._links.values():
            link.send(_DATA, value)
        return value

    def end(self) -> None:
        """Close the group. After this call, a closed connection does not mean that a rank is lost."""
        self._done = True
        for link in self._links.values():
            link.send(_BYE, b"")

    def fail(self, code: int) -> NoReturn:
        """Stop all ranks with exit status ``code``. The caller must report the reason before it calls this
        method.
        """
        self.dismiss(code)
        os._exit(code)

    def dismiss(self, code: int) -> None:
        """Make all other ranks exit with status ``code``. The caller must exit after this call."""
        self._done = True
        for link in self._links.values():
            link.send(_FAIL, bytes([code]))

    def _lost(self, rank: int, code: int | None) -> None:
        """Exit this process after another rank failed. ``code`` is the other rank's exit status, or ``None``
        if the rank is lost.
        """
        if self._done:
            return
        self._done = True
        self.over.set()
        spoken = code is not None
        for other, link in self._links.items():
            if other != rank:
                link.send(_FAIL, bytes([code if code is not None else 1]))
        if not spoken:
            if self.rank:
                # If rank 0 is lost, each rank waits for a different time, so that one rank reports first.
                time.sleep(min(0.3 * (self.rank - 1), _TIME_TO_SPEAK))
            where = f" on {self.members[rank].host}" if hasattr(self, "members") else ""
            print(
                f"rank {rank}{where} is lost: its process or its node failed; run the same command again "
                "to resume from the last checkpoint, if a checkpoint exists",
                file=sys.stderr,
                flush=True,
            )
            os._exit(1)
        time.sleep(_TIME_TO_SPEAK)
        os._exit(code or 1)


class Link:
    """A connection to another rank. A separate thread reads from the connection."""

    def __init__(
        self, rank: int, host: str, connection: socket.socket, on_lost: Callable[[int, int | None], None]
    ) -> None:
        self.host, self.address = host, connection.getpeername()[0]
        self.reached = connection.getsockname()[0]
        self._rank, self._connection, self._lost = rank, connection, on_lost
        self._came: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._sending = threading.Lock()
        connection.settimeout(None)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # A node that loses power does not close its connections, so TCP probes a silent connection.
        # The first probe follows 10 s without data. After 15 s of failed probes, the connection closes.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in (("TCP_KEEPIDLE", 10), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3)):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
        threading.Thread(target=self._read, daemon=True).start()

    def send(self, kind: bytes, value: bytes) -> None:
        """Send a message to the other rank. Ignore send errors, because the thread that reads from the
        connection detects a lost rank.
        """
        try:
            with self._sending:
                self._connection.sendall(_HEAD.pack(kind, len(value)))
                self._connection.sendall(value)
        except OSError:
            pass

    def take(self) -> bytes:
        """Wait for the next message from the other rank, and return the message. If the other rank is lost,
        this process exits.
        """
        return self._came.get()

    def _read(self) -> None:
        code: int | None = None
        try:
            while True:
                kind, length = _HEAD.unpack(_exactly(self._connection, _HEAD.size))
                value = _exactly(self._connection, length)
                if kind == _BYE:
                    self._connection.close()
                    return
                if kind == _FAIL:
                    code = value[0]
                    break
                self._came.put(value)
        except OSError:
            pass
        self._lost(self._rank, code)
        self._connection.close()


def _receive(place: RankPlace, seconds: float, on_lost: Callable[[int, int | None], None]) -> dict[int, Link]:
    """Accept connections until all ranks have joined, and return the connection of each rank. Raise
    ``Trouble`` if a rank does not join within ``seconds``.
    """
    links: dict[int, Link] = {}
    deadline = time.monotonic() + seconds
    with _listening(place) as listening:
        while len(links) < place.size - 1:
            listening.settimeout(max(0.01, deadline - time.monotonic()))
            try:
                connection, _ = listening.accept()
            except TimeoutError:
                for link in links.values():
                    link.send(_FAIL, bytes([1]))
                absent = ", ".join(str(rank) for rank in range(1, place.size) if rank not in links)
                raise Trouble(
                    f"rank {absent} did not reach rank 0 on {place.host} within {seconds:g} s; check the "
                    f"output of rank {absent}, and the firewall of rank 0's node",
                    code=1,
                ) from None
            rank, host = _greet_client(connection, place)
            if 0 < rank < place.size and rank not in links:
                links[rank] = Link(rank, host, connection, on_lost)
            else:
                connection.close()
    return links


def _listening(place: RankPlace) -> socket.socket:
    why = ""
    for port in place.ports:
        try:
            return socket.create_server((place.listen_address, port), backlog=1024)
        except OSError as error:
            why = error.strerror or str(error)
    raise Trouble(f"none of the ports {place.ports} can be opened on {place.host}: {why}", code=1)


def _greet_client(connection: socket.socket, place: RankPlace) -> tuple[int, str]:
    """Return the rank and host of the process that opened a new connection. If the process does not belong to
    this run of the job, or does not know the job's secret, return -1 as its rank.
    """
    try:
        connection.settimeout(_ANSWER_SECONDS)
        hello = _short(connection)
        said, nonce = json.loads(hello), os.urandom(16).hex()
        if said["run"] != place.run or said["size"] != place.size:
            return -1, ""
        _answer(connection, {"run": place.run, "nonce": nonce, "proof": _proof(place, b"root", nonce, hello)})
        if not proves(json.loads(_short(connection))["proof"], *_parts(place, b"rank", nonce, hello)):
            return -1, ""
        _answer(connection, {"run": place.run})
        return int(said["rank"]), str(said["host"])
    except (OSError, ValueError, KeyError, TypeError):
        return -1, ""


def _reach(place: RankPlace, seconds: float, on_lost: Callable[[int, int | None], None]) -> Link:
    """Try to connect to rank 0 until rank 0 accepts this rank, and return the connection. Raise ``Trouble``
    if rank 0 does not accept this rank within ``seconds``.
    """
    deadline, pause = time.monotonic() + seconds, 0.05
    while time.monotonic() < deadline:
        for port in place.ports:
            for host in place.hosts:
                try:
                    connection = socket.create_connection((host, port), timeout=_ANSWER_SECONDS)
                except OSError:
                    continue
                try:
                    if _introduce_rank(connection, place):
                        return Link(0, place.hosts[0], connection, on_lost)
                except (OSError, ValueError, KeyError, TypeError):
                    pass
                connection.close()
        time.sleep(pause)
        pause = min(1.0, pause * 1.5)
    raise Trouble(
        f"rank {place.rank} on {place.host} did not find rank 0 at {' or '.join(place.hosts)} within "
        f"{seconds:g} s; rank 0 may have failed, a firewall may block the port, or the host name of rank 0's "
        "node is wrong (set TOOLKIT_ROOT to the correct name)",
        code=1,
    )


def _introduce_rank(connection: socket.socket, place: RankPlace) -> bool:
    """Return whether the process at the other end proves that it is rank 0 of this job, and accepts this
    rank.
    """
    said = {"run": place.run, "rank": place.rank, "size": place.size, "host": place.host}
    hello = json.dumps({**said, "nonce": os.urandom(16).hex()}).encode()
    _send(connection, hello)
    answer = json.loads(_short(connection))
    nonce = str(answer["nonce"])
    if answer["run"] != place.run or not proves(answer["proof"], *_parts(place, b"root", nonce, hello)):
        return False
    _answer(connection, {"proof": _proof(place, b"rank", nonce, hello)})
    return bool(json.loads(_short(connection)) == {"run": place.run})


def _parts(place: RankPlace, role: bytes, nonce: str, hello: bytes) -> tuple[bytes, ...]:
    """Return the arguments of :func:`proof`: the job's secret, the sender's role, rank 0's random ``nonce``,
    and the other rank's first message ``hello``, which also contains a random value.
    """
    return place.secret, role, nonce.encode(), hello


def _proof(place: RankPlace, role: bytes, nonce: str, hello: bytes) -> str:
    return proof(*_parts(place, role, nonce, hello))


def _short(connection: socket.socket) -> bytes:
    (length,) = struct.unpack(">I", _exactly(connection, 4))
    if length > _LARGEST_HELLO:
        raise OSError("too long")
    return _exactly(connection, length)


def _answer(connection: socket.socket, message: dict[str, object]) -> None:
    _send(connection, json.dumps(message).encode())


def _send(connection: socket.socket, text: bytes) -> None:
    connection.sendall(struct.pack(">I", len(text)) + text)


def _exactly(connection: socket.socket, length: int) -> bytes:
    parts = bytearray()
    while len(parts) < length:
        came = connection.recv(min(1 << 20, length - len(parts)))
        if not came:
            raise OSError("the connection was closed")
        parts += came
    return bytes(parts)


def _pack(values: list[bytes]) -> bytes:
    return b"".join(struct.pack(">Q", len(value)) + value for value in values)


def _unpack(content: bytes) -> list[bytes]:
    values, at = [], 0
    while at < len(content):
        (length,) = struct.unpack_from(">Q", content, at)
        values.append(content[at + 8 : at + 8 + length])
        at += 8 + length
    return values
