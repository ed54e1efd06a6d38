"""A server that sends any bytes, even invalid HTTP: endless or slow answers.

The server accepts one request per connection, so a finite answer needs ``Connection: close``.
"""

import contextlib
import socket
import threading
import time

BLOCK = b"x" * (1 << 16)


class Raw:
    """A server whose ``answers`` map ``GET /path`` to a function that returns the blocks of an answer."""

    def __init__(self, answers):
        self.answers = {
            "GET /v2/": lambda: iter([finite("200 OK", b"{}")]),
            **answers,
        }
        self.asked, self.sent = [], 0
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.host = f"127.0.0.1:{self._listening.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        self._listening.close()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listening.accept()
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        with connection, contextlib.suppress(OSError):
            request = b""
            while b"\r\n\r\n" not in request:
                request += connection.recv(4096)
                if not request:
                    return
            key = b" ".join(request.split(b" ", 2)[:2]).decode().partition("?")[0]
            self.asked.append(key)
            for block in self.answers[key]():
                connection.sendall(block)
                self.sent += len(block)


def finite(status, body=b"", more=""):
    """Return a complete HTTP answer; ``more`` has further headers, each with its line end."""
    head = f"HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {len(body)}\r\n{more}\r\n"
    return head.encode() + body


def endless(head, block=BLOCK, most=200_000_000):
    def blocks():
        yield head.encode()
        for _ in range(most // len(block)):
            yield block

    return blocks


def slow(head, seconds=0.02):
    def blocks():
        yield head.encode()
        while True:
            yield b"x"
            time.sleep(seconds)

    return blocks
