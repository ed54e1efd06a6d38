"""An HTTP server for tests, with files that are good, wrong, truncated or slow."""

import gzip
import http.server
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Answer = Callable[[http.server.BaseHTTPRequestHandler], None]


def whole(content: bytes) -> Answer:
    def answer(request: http.server.BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.send_header("Content-Length", str(len(content)))
        request.end_headers()
        request.wfile.write(content)

    return answer


def cut(content: bytes, after: int) -> Answer:
    def answer(request: http.server.BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.send_header("Content-Length", str(len(content)))
        request.end_headers()
        request.wfile.write(content[:after])

    return answer


def resuming(content: bytes, after: int) -> Answer:
    def answer(request: http.server.BaseHTTPRequestHandler) -> None:
        start = int(request.headers.get("Range", "bytes=0-").removeprefix("bytes=").rstrip("-"))
        if start >= len(content):
            request.send_error(416)
            return
        request.send_response(206 if start else 200)
        request.send_header("Content-Length", str(len(content) - start))
        request.end_headers()
        request.wfile.write(content[start : start + after])

    return answer


def refusing(status: int, then: Answer, times: int = 1, retry_after: str = "0") -> Answer:
    left = [times]

    def answer(request: http.server.BaseHTTPRequestHandler) -> None:
        if not left[0]:
            then(request)
            return
        left[0] -= 1
        request.send_response(status)
        request.send_header("Retry-After", retry_after)
        request.send_header("Content-Length", "0")
        request.end_headers()

    return answer


def stalling(content: bytes, seconds: float) -> Answer:
    def answer(request: http.server.BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.send_header("Content-Length", str(len(content)))
        request.end_headers()
        request.wfile.write(content[:4])
        request.wfile.flush()
        time.sleep(seconds)

    return answer


def packed(content: bytes) -> bytes:
    return gzip.compress(content, mtime=0)


@contextmanager
def serving(answers: dict[str, Answer]) -> Iterator[tuple[str, list[str]]]:
    asked: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            if self.path in answers:
                answers[self.path](self)
            else:
                self.send_error(404)

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}", asked
        finally:
            server.shutdown()
            thread.join()
