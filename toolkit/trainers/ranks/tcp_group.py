"""Connect ranks over TCP without MPI, to exchange small messages and to notice at once when a rank is lost.

Rank 0 listens, and all other ranks keep a connection to it during the job. Rank 0 forwards messages to all. A
connection that closes without a goodbye means a lost rank, and stops the job.

Both ends of a connection first prove by HMAC that they know the secret of the job. The rest is not encrypted.

The messages are bytes; :mod:`toolkit.trainers.strategies.tcp_world` defines their content.
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
"""Seconds until all ranks must have joined: nodes need time to mount an image and to load TensorFlow."""

_ANSWER_SECONDS = 5.0
_TIME_TO_SPEAK = 3.0
"""Seconds that all other ranks give the failed rank to report, because a launcher stops them with the first
exit.
"""

_LARGEST_HELLO = 4096
_HEAD = struct.Struct(">cQ")
_DATA, _BYE, _FAIL = b"d", b"b", b"f"


@dataclass(frozen=True, slots=True)
class Member:
    """A rank as other ranks know it: the name of its node, and its address."""

    host: str
    address: str


class TcpGroup:
    """All ranks of a job; all ranks call the methods in the same order."""

    def __init__(self, place: RankPlace, seconds: float = SECONDS) -> None:
        """Connect the ranks.

        Raises:
            Trouble: if not all ranks join within ``seconds``.
        """
        self.rank, self.size = place.rank, place.size
        self._links: dict[int, Link] = {}
        self._done = False
        self.over = threading.Event()
        """Set when another rank has failed or is lost, and this one is about to exit."""
        if place.rank == 0:
            self._links = _receive(place, seconds, self._lost)
            # Ranks on rank 0's node connect by 127.0.0.1, but others need another address of that node.
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
        """Return the values of all ranks, in the order of ranks."""
        if self.rank:
            self._links[0].send(_DATA, value)
            return _unpack(self._links[0].take())
        values = [value, *(self._links[rank].take() for rank in range(1, self.size))]
        packed = _pack(values)
        for link in self._links.values():
            link.send(_DATA, packed)
        return values

    def broadcast(self, value: bytes) -> bytes:
        """Return the value of rank 0."""
        if self.rank:
            return self._links[0].take()
        for link in self._links.values():
            link.send(_DATA, value)
        return value

    def end(self) -> None:
        """Close the group: connections that close from now on are not failures."""
        self._done = True
        for link in self._links.values():
            link.send(_BYE, b"")

    def fail(self, code: int) -> NoReturn:
        """Stop all ranks with this exit status; the caller has already reported why."""
        self.dismiss(code)
        os._exit(code)

    def dismiss(self, code: int) -> None:
        """Make all other ranks exit with this status; the caller must exit next."""
        self._done = True
        for link in self._links.values():
            link.send(_FAIL, bytes([code]))

    def _lost(self, rank: int, code: int | None) -> None:
        """Exit this rank, because another rank has failed with this code or is lost."""
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
                # Of the ranks that lost rank 0, one reports first.
                time.sleep(min(0.3 * (self.rank - 1), _TIME_TO_SPEAK))
            where = f" on {self.members[rank].host}" if hasattr(self, "members") else ""
            print(
                f"rank {rank}{where} is lost: its process or its node failed; the same command resumes "
                "from the last checkpoint, if there is one",
                file=sys.stderr,
                flush=True,
            )
            os._exit(1)
        time.sleep(_TIME_TO_SPEAK)
        os._exit(code or 1)


class Link:
    """A connection to another rank, read by a separate thread."""

    def __init__(
        self, rank: int, host: str, connection: socket.socket, lost: Callable[[int, int | None], None]
    ) -> None:
        self.host, self.address = host, connection.getpeername()[0]
        self.reached = connection.getsockname()[0]
        self._rank, self._connection, self._lost = rank, connection, lost
        self._came: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._sending = threading.Lock()
        connection.settimeout(None)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # A node without power sends nothing: after 10 s of silence TCP probes it, for 15 s.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in (("TCP_KEEPIDLE", 10), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3)):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
        threading.Thread(target=self._read, daemon=True).start()

    def send(self, kind: bytes, value: bytes) -> None:
        """Send a message; the reading thread notices a lost rank."""
        try:
            with self._sending:
                self._connection.sendall(_HEAD.pack(kind, len(value)))
                self._connection.sendall(value)
        except OSError:
            pass

    def take(self) -> bytes:
        """Return the next message; if the rank is lost, this process exits."""
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


def _receive(place: RankPlace, seconds: float, lost: Callable[[int, int | None], None]) -> dict[int, Link]:
    """Accept connections until all ranks have joined."""
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
                    f"rank {absent} did not reach rank 0 on {place.host} within {seconds:g} s", code=1
                ) from None
            rank, host = _greet_client(connection, place)
            if 0 < rank < place.size and rank not in links:
                links[rank] = Link(rank, host, connection, lost)
            else:
                connection.close()
    return links


def _listening(place: RankPlace) -> socket.socket:
    why = ""
    for port in place.ports:
        try:
            return socket.create_server((place.listens, port), backlog=1024)
        except OSError as error:
            why = error.strerror or str(error)
    raise Trouble(f"none of the ports {place.ports} can be opened on {place.host}: {why}", code=1)


def _greet_client(connection: socket.socket, place: RankPlace) -> tuple[int, str]:
    """Return rank and host of a new connection; rank -1 if it does not belong to this job."""
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


def _reach(place: RankPlace, seconds: float, lost: Callable[[int, int | None], None]) -> Link:
    """Try to connect to rank 0 until it answers."""
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
                        return Link(0, place.hosts[0], connection, lost)
                except (OSError, ValueError, KeyError, TypeError):
                    pass
                connection.close()
        time.sleep(pause)
        pause = min(1.0, pause * 1.5)
    raise Trouble(
        f"rank {place.rank} on {place.host} did not find rank 0 at {' or '.join(place.hosts)} within "
        f"{seconds:g} s; is there a firewall between, or another name for its node? (TOOLKIT_ROOT)",
        code=1,
    )


def _introduce_rank(connection: socket.socket, place: RankPlace) -> bool:
    """Return whether the other end is rank 0 of this job and has accepted this rank."""
    said = {"run": place.run, "rank": place.rank, "size": place.size, "host": place.host}
    hello = json.dumps({**said, "nonce": os.urandom(16).hex()}).encode()
    _send(connection, hello)
    answer = json.loads(_short(connection))
    nonce = str(answer["nonce"])
    if answer["run"] != place.run or not proves(answer["proof"], *_parts(place, b"root", nonce, hello)):
        return False
    _answer(connection, {"proof": _proof(place, b"rank", nonce, hello)})
    return bool(json.loads(_short(connection)) == {"run": place.run})


def _parts(place: RankPlace, who: bytes, nonce: str, hello: bytes) -> tuple[bytes, ...]:
    """Return the secret and the parts of a proof: the sender, and the random values of both ends."""
    return place.secret, who, nonce.encode(), hello


def _proof(place: RankPlace, who: bytes, nonce: str, hello: bytes) -> str:
    return proof(*_parts(place, who, nonce, hello))


def _short(connection: socket.socket) -> bytes:
    (length,) = struct.unpack(">I", _exactly(connection, 4))
    if length > _LARGEST_HELLO:
        raise OSError("too long")
    return _exactly(connection, length)


def _answer(connection: socket.socket, said: dict[str, object]) -> None:
    _send(connection, json.dumps(said).encode())


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


def _unpack(packed: bytes) -> list[bytes]:
    values, at = [], 0
    while at < len(packed):
        (length,) = struct.unpack_from(">Q", packed, at)
        values.append(packed[at + 8 : at + 8 + length])
        at += 8 + length
    return values
