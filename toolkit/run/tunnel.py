"""Forward TCP connections from a local port to a port on a remote machine.

The remote machine runs the program :mod:`toolkit.run.relay`. Any launcher, such as srun in a job, may start
this program. The tunnel needs neither a server on a login node nor an open port between the machines.
"""

import contextlib
import itertools
import socket
import threading
from collections.abc import Callable, Iterator

from toolkit.errors import BadInput, CheckFailed
from toolkit.run.conversation import Conversation
from toolkit.run.relay import HELLO, Connections

_LONGEST_BANNER = 200
"""While toolkit waits for the relay's first line, it skips other lines, such as a login banner. After more
skipped lines than this number, toolkit stops waiting and reports an error.
"""


class Tunnel:
    """The local end of the tunnel: a listening socket on this machine.

    While :meth:`serve` runs, toolkit forwards each connection to this socket through the tunnel. At other
    times, toolkit closes each connection immediately.
    """

    def __init__(self, port: int = 0) -> None:
        """Listen on ``port`` of 127.0.0.1 only. For port 0, the operating system selects a free port.

        Raises:
            BadInput: if the port is not available.
        """
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind(("127.0.0.1", port))
        except OSError as error:
            self._socket.close()
            raise BadInput(
                f"--port {port}: {error.strerror} on 127.0.0.1", fix="leave out `--port` to use a free port"
            ) from error
        self._socket.listen(64)
        self._numbers = itertools.count(1)
        self._connections: Connections | None = None
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def port(self) -> int:
        """The local port at which the tunnel listens."""
        port: int = self._socket.getsockname()[1]
        return port

    def serve(self, conversation: Conversation, on_ready: Callable[[], None] = lambda: None) -> None:
        """Forward connections until the remote relay exits. Through ``conversation``, toolkit writes to the
        input of the remote relay and reads its output. The function calls ``on_ready`` when the remote relay
        is ready.

        Raises:
            CheckFailed: if the remote relay did not start.
        """
        connections = Connections(conversation.write)
        lines = _lines(conversation)
        banner: list[str] = []
        while (line := next(lines, None)) is None or connections.hear(line)[0] != HELLO:
            if line is None or len(banner) > _LONGEST_BANNER:
                output = (*banner, *conversation.errors().splitlines())
                raise CheckFailed("the remote end of the tunnel did not start", detail=output[-8:])
            banner.append(line.decode("utf-8", "replace"))
        self._connections = connections
        try:
            on_ready()
            for line in lines:
                connections.hear(line)
        finally:
            self._connections = None
            connections.close()

    def close(self) -> None:
        """Stop accepting connections. Accepted connections stay open until :meth:`serve` returns."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:  # the socket was closed
                return
            connections = self._connections
            if connections is None:
                connection.close()
                continue
            number = next(self._numbers)
            try:
                connections.add(number, connection, opened=False)
            except (OSError, ValueError):  # the relay accepts no more input; serve() returns when it exits
                connections.forget(number)
                connection.close()


def _lines(conversation: Conversation) -> Iterator[bytes]:
    rest = b""
    while chunk := conversation.read():
        *lines, rest = (rest + chunk).split(b"\n")
        yield from lines
