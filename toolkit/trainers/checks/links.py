"""Measure the network speed between nodes. The nodes form a ring. All nodes send at the same time, each to
the next node in the ring.
"""

import socket
import threading
import time
from typing import TYPE_CHECKING

from toolkit.trainers.checks.board import Board

if TYPE_CHECKING:
    from mpi4py.MPI import Comm

_FIRST, _LARGEST = 1 << 20, 1 << 26
"""The sizes in bytes of the first (smallest) and the largest MPI message of the measurement."""

_ENOUGH = 0.05
"""The measurement stops after a transfer that takes longer than this number of seconds, because such a
transfer is long enough to measure the speed.
"""

_SECONDS = 0.5
"""The number of seconds for which each node sends data over TCP."""

_CHUNK = 1 << 20


def over_mpi(nodes: "Comm") -> float:
    """Return the highest rate in Gbit/s at which this rank received data from the previous node over MPI.
    ``nodes`` is an MPI communicator that contains one rank of each node.
    """
    from mpi4py import MPI

    rank, size = nodes.Get_rank(), nodes.Get_size()
    count, best = _FIRST, 0.0
    nodes.Sendrecv(bytearray(1), (rank + 1) % size, recvbuf=bytearray(1), source=(rank - 1) % size)
    while True:
        sent, received = bytearray(count), bytearray(count)
        nodes.Barrier()
        begun = time.monotonic()
        nodes.Sendrecv(sent, (rank + 1) % size, recvbuf=received, source=(rank - 1) % size)
        took = max(time.monotonic() - begun, 1e-6)
        best = max(best, count * 8 / took / 1e9)
        # All ranks stop after the same transfer, so that no rank waits for a rank that has stopped.
        if nodes.allreduce(took, op=MPI.MAX) > _ENOUGH or count >= _LARGEST:
            return best
        count *= 4


def over_tcp(board: Board, number: int, nodes: int, address: str, deadline: float) -> float:
    """Return the rate in Gbit/s at which this node receives data from the previous node over TCP.

    ``nodes`` is the number of nodes. ``number`` is the position of this node in the ring of nodes, from 0 to
    ``nodes`` - 1. ``address`` is this node's IP address. Raises ``OSError`` or :class:`Silence` if no data
    arrives before ``deadline``, a value of ``time.monotonic()``.
    """
    following = (number + 1) % nodes
    with socket.create_server((address, 0)) as listener:
        host, port = listener.getsockname()
        board.write(f"link-{number}", f"{host} {port}")
        next_host, next_port = board.read(f"link-{following}").split()
        sender = threading.Thread(target=_pour, args=((next_host, int(next_port)), deadline), daemon=True)
        sender.start()
        listener.settimeout(max(0.1, deadline - time.monotonic()))
        connection, _ = listener.accept()
        with connection:
            speed = _drain(connection, deadline)
        sender.join(max(0.1, deadline - time.monotonic()))
    return speed


def _pour(place: tuple[str, int], deadline: float) -> None:
    """Send data to the next node for ``_SECONDS`` seconds. Ignore send errors, because the receiving rank
    reports the missing data.
    """
    chunk = bytes(_CHUNK)
    try:
        with socket.create_connection(place, timeout=max(0.1, deadline - time.monotonic())) as connection:
            end = time.monotonic() + _SECONDS
            while time.monotonic() < end:
                connection.sendall(chunk)
    except OSError:
        return


def _drain(connection: socket.socket, deadline: float) -> float:
    buffer, count = bytearray(_CHUNK), 0
    begun = time.monotonic()
    while True:
        connection.settimeout(max(0.1, deadline - time.monotonic()))
        read = connection.recv_into(buffer)
        if not read:
            return count * 8 / max(time.monotonic() - begun, 1e-6) / 1e9
        count += read
