"""Send HTTP requests with limits on time and bytes, and with checked redirects.

By itself, the library ``requests`` reads a body of any size into memory, even the body of a redirect.
``requests`` has no time limit for a whole response.
"""

import contextlib
import http.client
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Self

from toolkit import __version__
from toolkit.run.web.limits import Limits, Meter, MeteredTls, meter_socket
from toolkit.run.web.redirects import Redirects, is_redirect

if TYPE_CHECKING:
    import ssl

    import requests

CONNECT_SECONDS = 15.0
_REUSED = 1 << 16
"""If the unread rest of a body has at most this number of bytes, toolkit reads the rest, so that it can use
the connection again. If the rest is longer, toolkit closes the connection.
"""
_PACKED = {"gzip": 31, "x-gzip": 31, "deflate": 47}
"""zlib's parameter ``wbits`` for each HTTP content coding. Some servers compress a body although toolkit asks
for ``identity``.
"""

Proof = Callable[["requests.PreparedRequest"], "requests.PreparedRequest"]
"""A function that adds authentication, such as a password, to a request."""


class Response:
    """The response to a request. toolkit reads the body only when a caller asks for it."""

    def __init__(self, answer: "requests.Response", meter: Meter) -> None:
        self._answer, self._meter = answer, meter
        self.status_code = answer.status_code
        self.reason = str(answer.reason or "")
        self.url = str(answer.url)
        self.headers: Mapping[str, str] = answer.headers

    def __enter__(self) -> Self:
        return self

    def __exit__(self, error_type: type[BaseException] | None, *_: object) -> None:
        if error_type is None:
            self.close()
        else:
            self._answer.close()

    def read(self, limit: int) -> bytes:
        """Return the body after decompression, but at most its first ``limit`` bytes.

        Raises:
            RequestException: if the connection is interrupted, a limit is exceeded, or the content coding is
                unknown.
        """
        import requests

        body = bytearray()
        while len(body) < limit and (piece := self._next(limit - len(body))):
            body += piece
        coding = self.headers.get("Content-Encoding", "identity").strip().lower()
        if coding in {"", "identity"}:
            return bytes(body)
        try:
            return zlib.decompressobj(_PACKED[coding]).decompress(bytes(body), limit)
        except (KeyError, zlib.error) as error:
            raise requests.exceptions.ContentDecodingError(error) from error

    def chunks(self, step: int, limits: Limits) -> Iterator[bytes]:
        """Yield the body while it arrives, in chunks of at most ``step`` bytes. ``limits`` apply to the body.

        Raises:
            RequestException: if the connection is interrupted, or a limit is exceeded.
        """
        self._meter.begin(limits)
        while chunk := self._next(step):
            yield chunk

    def close(self) -> None:
        """Finish reading the response. If only a short part of the body is unread, read this part, so that
        the next request can use the same connection.
        """
        import requests

        left = self._answer.raw.length_remaining
        if left is not None and left <= _REUSED:
            with contextlib.suppress(requests.exceptions.RequestException):
                self._next(left + 1)
        self._answer.close()

    def _next(self, size: int) -> bytes:
        import requests
        import urllib3

        try:
            piece: bytes = self._answer.raw.read(size, decode_content=False)
        except (urllib3.exceptions.HTTPError, http.client.HTTPException, OSError) as error:
            raise requests.exceptions.ChunkedEncodingError(error) from error
        return piece


class Client:
    """Sends requests with the TLS settings of ``context``, and keeps connections open for later requests."""

    def __init__(self, context: "ssl.SSLContext") -> None:
        self._meter = Meter()
        self._http = _session(context, self._meter)
        self._http.headers.update({"User-Agent": f"toolkit/{__version__}", "Accept-Encoding": "identity"})

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str],
        proof: Callable[[str], Proof],
        limits: Limits,
        redirects: bool = True,
        params: Any = None,  # noqa: ANN401 - a mapping, whose values may be lists
        data: Any = None,  # noqa: ANN401 - bytes, a form, or a file with ``seek``
    ) -> Response:
        """Return the response to a request. ``limits`` apply to the response and its redirects together.

        toolkit calls ``proof`` with the URL of the request and of each redirect. ``proof`` returns the
        function that adds authentication to the request for this URL.

        Raises:
            BadRedirect: if toolkit refuses a redirect.
            RequestException: if the server does not answer, or if a limit is exceeded.
        """
        way = Redirects(url)
        self._meter.begin(limits)
        while True:
            answer = self._http.request(
                method,
                url,
                headers=dict(headers),
                params=params,
                data=data,
                auth=proof(url),
                stream=True,
                timeout=(CONNECT_SECONDS, limits.silence),
                allow_redirects=False,
            )
            response = Response(answer, self._meter)
            location = response.headers.get("Location", "")
            if not redirects or not is_redirect(method, response.status_code, location):
                return response
            response.close()
            url, params = way.target(location), None
            if hasattr(data, "seek"):
                data.seek(0)


def prove_nothing(_url: str) -> Proof:
    """Return a function that adds no authentication to a request. Without such a function, the library
    ``requests`` would send a password from ~/.netrc.
    """
    return lambda request: request


def _session(context: "ssl.SSLContext", meter: Meter) -> "requests.Session":
    import requests

    class BoundedSession(requests.Session):
        """A session that does not follow redirects, because ``requests`` would read the whole body of a
        redirect response.
        """

        def get_redirect_target(self, resp: requests.Response) -> str | None:  # noqa: ARG002 - as in requests
            return None

    session = BoundedSession()
    adapter = _adapter(context, meter)
    session.mount("https://", adapter)
    session.mount("http://", adapter)
    return session


def _adapter(context: "ssl.SSLContext", meter: Meter) -> Any:  # noqa: ANN401 - a type of requests
    from requests.adapters import HTTPAdapter

    context.sslsocket_class = MeteredTls
    classes = _pool_classes(meter)

    class Adapter(HTTPAdapter):
        """An adapter for ``requests`` with the TLS settings of ``context``. ``meter`` counts the bytes that
        the adapter's sockets receive.
        """

        def init_poolmanager(self, *args: Any, **options: Any) -> None:  # noqa: ANN401 - as in requests
            super().init_poolmanager(*args, ssl_context=context, **options)
            self.poolmanager.pool_classes_by_scheme = classes

        def proxy_manager_for(self, proxy: Any, **options: Any) -> Any:  # noqa: ANN401 - as in requests
            manager = super().proxy_manager_for(proxy, ssl_context=context, **options)
            manager.pool_classes_by_scheme = classes
            return manager

    return Adapter()


def _pool_classes(meter: Meter) -> dict[str, Any]:
    from urllib3.connection import HTTPConnection, HTTPSConnection
    from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

    class Plain(HTTPConnection):
        def _new_conn(self) -> Any:  # noqa: ANN401 - urllib3 1 and 2 differ
            return meter_socket(super()._new_conn(), meter)

    class Tls(HTTPSConnection):
        def _new_conn(self) -> Any:  # noqa: ANN401 - urllib3 1 and 2 differ
            return meter_socket(super()._new_conn(), meter)

        def connect(self) -> None:
            super().connect()
            # If the proxy and the server both use TLS, ``self.sock`` wraps the TLS socket to the proxy.
            outer = getattr(self.sock, "socket", self.sock)
            if isinstance(outer, MeteredTls):
                outer.meter = meter

    class PlainPool(HTTPConnectionPool):
        ConnectionCls = Plain

    class TlsPool(HTTPSConnectionPool):
        ConnectionCls = Tls

    return {"http": PlainPool, "https": TlsPool}
