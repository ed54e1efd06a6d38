"""Check before a training whether Gloo can connect the ranks. Gloo needs TCP connections between all nodes,
and from all ranks to the HTTP store, a small server on rank 0.

Each rank sends half a megabyte to the next rank, over the network interface that Gloo will use. The check
does not load TensorFlow or Horovod. Rank 0 collects the faults of all ranks.
"""

import hashlib
import json
import os
import socket
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace

from toolkit.trainers.checks.board import Board, Silence
from toolkit.trainers.checks.links import over_tcp
from toolkit.trainers.checks.node import Facts, facts_of, read_facts
from toolkit.trainers.checks.verdict import PreflightVerdict, judge
from toolkit.trainers.checks.wanted import Requirements
from toolkit.trainers.rendezvous import interfaces

_BYTES = 1 << 19
_TIME_TO_HEAR = 5.0
"""The number of seconds after the check's time limit in which the ranks can still report faults to rank 0."""


def check_ring(environment: Mapping[str, str], requirements: Requirements) -> tuple[PreflightVerdict, str]:
    """Check all ranks, their network and their nodes. Every rank calls this function. Return the verdict (the
    result of all checks) and the name of this rank's network interface.

    ``environment`` contains the variables that :mod:`toolkit.trainers.gloo` sets for a rank.
    """
    rank, size = int(environment["HOROVOD_RANK"]), int(environment["HOROVOD_SIZE"])
    host, interface = environment["HOROVOD_HOSTNAME"], environment.get("HOROVOD_GLOO_IFACE", "")
    if size != requirements.tasks:
        sentence = f"Gloo finds a world of size {size}, but {requirements.tasks} tasks were started"
        return _failed_verdict(sentence), interface
    deadline = time.monotonic() + requirements.seconds
    where = (environment["HOROVOD_GLOO_RENDEZVOUS_ADDR"], int(environment["HOROVOD_GLOO_RENDEZVOUS_PORT"]))
    late = Board(*where, deadline + _TIME_TO_HEAR)
    first = environment.get("HOROVOD_LOCAL_RANK") == "0"
    found, facts = "", read_facts(requirements, rank, host, first=first)
    try:
        own, board = _address_of(interface, interfaces()), Board(*where, deadline)
        found = "" if size == 1 else _pass_on(board, rank, size, own, deadline)
        nodes = int(environment.get("HOROVOD_CROSS_SIZE", "1"))
        if not found and first and nodes > 1:
            number = int(environment["HOROVOD_CROSS_RANK"])
            facts = replace(facts, gbit=over_tcp(board, number, nodes, own, deadline))
        facts = replace(facts, ahead=board.ahead)
    except (Silence, OSError, ValueError) as error:
        found = f"rank {rank} on {host}: {error}"
    try:
        return _agree(late, size, found, facts, requirements), interface
    except Silence:
        silent = f"not all ranks reported to rank 0 within {requirements.seconds:g} s"
        return _failed_verdict(found or silent), interface


def _failed_verdict(sentence: str) -> PreflightVerdict:
    return PreflightVerdict(failures=(sentence,))


def _pass_on(board: Board, rank: int, size: int, address: str, deadline: float) -> str:
    """Send a test message to the next rank, and receive a test message from the previous rank. Return an
    error message, or an empty string if both transfers succeeded.
    """
    left, right = (rank - 1) % size, (rank + 1) % size
    with socket.create_server((address, 0)) as listener:
        host, port = listener.getsockname()
        board.write(f"address-{rank}", f"{host} {port}")
        next_host, next_port = board.read(f"address-{right}").split()
        failed: list[str] = []
        sender = threading.Thread(
            target=_send, args=((next_host, int(next_port)), _message(rank), deadline, failed), daemon=True
        )
        sender.start()
        listener.settimeout(max(0.1, deadline - time.monotonic()))
        try:
            connection, _ = listener.accept()
            with connection:
                received = _receive(connection, deadline)
        except OSError:
            received = None
        sender.join(max(0.1, deadline - time.monotonic()))
    if failed:
        return f"rank {rank} cannot reach rank {right} at {next_host}: {failed[0]}"
    if received is None:
        return f"rank {rank} on {host} received no data from rank {left}"
    if received != _message(left):
        return f"rank {rank} received a damaged message from rank {left}"
    return ""


def _agree(
    board: Board, size: int, problem: str, facts: Facts, requirements: Requirements
) -> PreflightVerdict:
    """Send this rank's fault and facts to rank 0, and return rank 0's verdict about all ranks."""
    rank = facts.rank
    board.write(f"result-{rank}", json.dumps([problem, asdict(facts)]))
    if rank == 0:
        told = [json.loads(board.read(f"result-{other}")) for other in range(size)]
        worst = next((said for said, _ in told if said), "")
        verdict = judge([facts_of(one) for _, one in told], requirements, tcp=True)
        # If several ranks have a fault, report only the fault of the lowest of these ranks. One fault is
        # enough to stop the job.
        verdict = replace(verdict, failures=(worst,)) if worst else verdict
        board.write("verdict", json.dumps(asdict(verdict)))
    said = json.loads(board.read("verdict"))
    board.write(f"done-{rank}", "")
    if rank == 0:
        # Rank 0 waits until all ranks have read the verdict, because the HTTP store closes when rank 0 exits.
        for other in range(size):
            board.read(f"done-{other}")
    return PreflightVerdict(tuple(said["failures"]), tuple(said["warnings"]), said["nodes"], said["slowest"])


def _message(rank: int) -> bytes:
    """Return the test message that ``rank`` sends. No 32-byte piece occurs twice in the test messages of all
    ranks, so the receiving rank detects wrong or reordered data.
    """
    pieces = (hashlib.sha256(b"%d %d" % (rank, number)).digest() for number in range(_BYTES // 32))
    return b"".join(pieces)


def _send(place: tuple[str, int], message: bytes, deadline: float, failures: list[str]) -> None:
    try:
        with socket.create_connection(place, timeout=max(0.1, deadline - time.monotonic())) as connection:
            connection.sendall(message)
    except OSError as error:
        failures.append(error.strerror or str(error))


def _receive(connection: socket.socket, deadline: float) -> bytes:
    parts: list[bytes] = []
    while True:
        connection.settimeout(max(0.1, deadline - time.monotonic()))
        part = connection.recv(1 << 16)
        if not part or sum(map(len, parts)) > _BYTES:
            return b"".join(parts)
        parts.append(part)


def _address_of(interface: str, interface_addresses: Iterable[tuple[str, str]]) -> str:
    """Return the IP address that Gloo will use: the first address of the network interface ``interface``. If
    this node has no such interface, return the address to which its host name resolves.
    """
    found = next((address for name, address in interface_addresses if name == interface), "")
    return found or socket.gethostbyname(socket.gethostname())


def connect_ring(environment: Mapping[str, str] = os.environ) -> bool:
    """Return whether the environment variables select Gloo for Horovod, and contain the address of Gloo's
    HTTP store.
    """
    return environment.get("HOROVOD_CONTROLLER") == "gloo" and "HOROVOD_GLOO_RENDEZVOUS_ADDR" in environment
