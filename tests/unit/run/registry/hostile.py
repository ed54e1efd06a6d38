"""An HTTP server whose answers differ from a real registry's: wrong, slow, or too long."""

import contextlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest


class Server:
    """A server whose ``answers`` map ``METHOD /path`` to (status, headers, body), or to a function.

    A list contains successive answers, and its last answer repeats.
    """

    def __init__(self):
        self.answers = {"GET /v2/": (200, {}, b"{}")}
        self.asked = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *args):
                pass

            def handle_any(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                key = f"{self.command} {self.path.partition('?')[0]}"
                server.asked.append((key, dict(self.headers), body))
                found = server.answers.get(key, (404, {}, b""))
                if isinstance(found, list):
                    found = found.pop(0) if len(found) > 1 else found[0]
                status, headers, content = found(self, body) if callable(found) else found
                self.send_response(status)
                if "Content-Length" not in headers:
                    self.send_header("Content-Length", str(len(content)))
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                if self.command != "HEAD":
                    with contextlib.suppress(OSError):
                        self.wfile.write(content)
                if headers.get("Content-Length", str(len(content))) != str(len(content)):
                    self.close_connection = True

            def __getattr__(self, name):
                if name.startswith("do_"):
                    return self.handle_any
                raise AttributeError(name)

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self.host = f"127.0.0.1:{self._http.server_address[1]}"
        threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def close(self):
        self._http.shutdown()
        self._http.server_close()


@pytest.fixture
def server():
    made = Server()
    yield made
    made.close()
