"""A proxy between toolkit and the Docker engine, which can close all connections as if the engine crashed."""

import contextlib
import socket
import threading
from pathlib import Path

ENGINE = "/var/run/docker.sock"


class MortalEngine:
    """Forwards all data until an answer of the engine contains ``last_words``. Then it closes every
    connection.
    """

    def __init__(self, path: Path, last_words: bytes) -> None:
        self.url = f"unix://{path}"
        self._path = path
        self._last_words = last_words
        self._sockets: list[socket.socket] = []
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def die(self) -> None:
        with contextlib.suppress(OSError):
            self._path.unlink()
        for one in (self._listener, *self._sockets):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                engine = socket.socket(socket.AF_UNIX)
                engine.connect(ENGINE)
                self._sockets += [client, engine]
                for pair in ((client, engine, b""), (engine, client, self._last_words)):
                    threading.Thread(target=self._pass, args=pair, daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket, until: bytes) -> None:
        seen = b""
        with contextlib.suppress(OSError):
            while chunk := source.recv(1 << 16):
                target.sendall(chunk)
                seen = (seen + chunk)[-4096:]
                if until and until in seen:
                    self.die()
            target.shutdown(socket.SHUT_WR)
