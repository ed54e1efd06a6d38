"""Relay (forward) TCP connections over a program's standard input and output. ``python3 relay.py PORT`` runs
the far end of a tunnel.

The far end runs on a compute node. For each connection that the near end (:mod:`toolkit.run.tunnel`) accepts,
the far end connects to 127.0.0.1:PORT on its node. The far end exits when its standard input ends. The two
ends exchange text lines, ``@ NUMBER KIND BASE64``, because a launcher between them may forward output only in
whole lines. The relay ignores other lines, such as the banner of a login shell. This file needs only Python
3.6, the Python version of RHEL 8.
"""

import base64
import binascii
import contextlib
import queue
import socket
import sys
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

OPEN, DATA, END, GONE, HELLO = "o", "d", "e", "c", "h"
"""The kinds of lines in the relay's protocol.

``OPEN`` asks the far end to connect. ``DATA`` contains bytes. ``END`` means no more bytes in this direction.
``GONE`` means that the connection is closed. ``HELLO`` means that the far end is ready.
"""

_CHUNK = 6144
_MOST_WAITING = 64 << 20
"""The largest number of bytes that may wait in memory until the relay can write them to a connection.

If more bytes than this wait, for example because the connected program does not read, the relay closes the
connection.
"""

_CONNECT_SECONDS = 10


class Connections:
    """The relayed connections at one end of the tunnel. A number identifies each connection. ``write`` sends
    a line to the other end of the tunnel.
    """

    def __init__(self, write: "Callable[[bytes], None]") -> None:
        self._write = write
        self._wire = threading.Lock()
        self._open = {}  # type: dict[int, _Connection]

    def say(self, number: int, kind: str, content: bytes = b"") -> None:
        """Send a line to the other end of the tunnel. Raise ``OSError`` or ``ValueError`` if the pipe to the
        other end is broken.
        """
        line = f"@ {number} {kind} {base64.b64encode(content).decode('ascii')}\n"
        with self._wire:
            self._write(line.encode("ascii"))

    def add(self, number: int, connection: socket.socket, opened: bool = True) -> None:
        """Relay a connection under the number ``number``. If ``opened`` is false, first ask the other
        end of the tunnel to open a connection with the same number.

        Raises:
            OSError: if the pipe to the other end is broken.
            ValueError: if the pipe to the other end is closed.
        """
        # Register the connection first, because the other end may reply at once that it cannot connect.
        carrier = self._open[number] = _Connection(self, number, connection)
        if not opened:
            self.say(number, OPEN)
        carrier.start()

    def hear(self, line: bytes) -> "tuple[str, int]":
        """Handle a line from the other end of the tunnel: pass the bytes in the line to the connection with
        the line's number.

        If no connection has the number in the line, return the kind of the line and this number, such as
        ``(OPEN, 3)``. If a connection has this number, return an empty kind and the number. For a line that
        the relay ignores, return ``("", 0)``.
        """
        frame = _parse_frame(line)
        if frame is None:
            return "", 0
        number, kind, content = frame
        carrier = self._open.get(number)
        if carrier is None:
            return kind, number
        if kind == DATA:
            carrier.give(content)
        elif kind == END:
            carrier.give(b"")
        elif kind == GONE:
            carrier.stop()
        return "", number

    def forget(self, number: int) -> None:
        """Stop relaying the connection with this number."""
        self._open.pop(number, None)

    def close(self) -> None:
        """Close all connections."""
        for carrier in list(self._open.values()):
            carrier.stop()


def _parse_frame(line: bytes) -> "tuple[int, str, bytes] | None":
    words = line.split()
    if len(words) not in (3, 4) or words[0] != b"@" or not words[1].isdigit():
        return None
    try:
        content = base64.b64decode(words[3], validate=True) if len(words) == 4 else b""
    except (binascii.Error, ValueError):
        return None
    return int(words[1]), words[2].decode("ascii", "replace"), content


class _Connection:
    """One relayed TCP connection, with a thread for each direction."""

    def __init__(self, connections: Connections, number: int, connection: socket.socket) -> None:
        self._connections, self._number, self._socket = connections, number, connection
        self._waiting = queue.Queue()  # type: queue.Queue[bytes]
        self._lock = threading.Lock()
        self._size, self._directions = 0, 2

    def start(self) -> None:
        for work in (self._from_socket, self._to_socket):
            threading.Thread(target=work, daemon=True).start()

    def give(self, content: bytes) -> None:
        """Queue bytes, which the connection's thread writes to the socket. Empty ``content`` means that the
        other end of the tunnel sends no more bytes.
        """
        with self._lock:
            self._size += len(content)
            full = self._size > _MOST_WAITING
        if full:
            self.stop()
        else:
            self._waiting.put(content)

    def stop(self) -> None:
        self._connections.forget(self._number)
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._waiting.put(b"")

    def _from_socket(self) -> None:
        try:
            for content in iter(lambda: self._socket.recv(_CHUNK), b""):
                self._connections.say(self._number, DATA, content)
            self._connections.say(self._number, END)
        except (OSError, ValueError):
            self._give_up()
        self._done()

    def _to_socket(self) -> None:
        try:
            for content in iter(self._waiting.get, b""):
                self._socket.sendall(content)
                with self._lock:
                    self._size -= len(content)
            self._socket.shutdown(socket.SHUT_WR)
        except OSError:
            self._give_up()
        self._done()

    def _give_up(self) -> None:
        self.stop()
        with contextlib.suppress(OSError, ValueError):  # the pipe to the other end may be broken
            self._connections.say(self._number, GONE)

    def _done(self) -> None:
        with self._lock:
            self._directions -= 1
            last = self._directions == 0
        if last:
            self._connections.forget(self._number)
            self._socket.close()


def main(port: int) -> None:
    """Run the far end of the tunnel until its standard input ends."""
    out = sys.stdout.buffer

    def write(line: bytes) -> None:
        out.write(line)
        out.flush()

    connections = Connections(write)
    connections.say(0, HELLO)
    for line in iter(sys.stdin.buffer.readline, b""):
        kind, number = connections.hear(line)
        if kind == OPEN:
            try:
                connection = socket.create_connection(("127.0.0.1", port), _CONNECT_SECONDS)
            except OSError:
                connections.say(number, GONE)
                continue
            connection.settimeout(None)
            connections.add(number, connection)
    connections.close()


if __name__ == "__main__":
    main(int(sys.argv[1]))
