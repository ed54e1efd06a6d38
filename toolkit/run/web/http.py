"""Read files over HTTP with time limits. Environment variables such as ``HTTPS_PROXY`` and ``SSL_CERT_FILE``
set the proxies and certificates.
"""

import base64
import contextlib
import http.client
import random
import ssl
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.errors import Missing
from toolkit.run.web.client import Client, Proof, Response, prove_nothing
from toolkit.run.web.limits import CONTROL_SECONDS, Limits, broken_limit, of_transfer
from toolkit.run.web.redirects import BadRedirect
from toolkit.run.web.redirects import without_login as without_login

if TYPE_CHECKING:
    import requests

_STALLED = 10.0
"""The default number of seconds without a received byte after which toolkit stops a transfer."""
_STEP = 1 << 16
"""The number of bytes that one read requests. An interruption of a download loses at most this number of
bytes.
"""

_LATER = frozenset({408, 425, 429})
"""HTTP statuses after which a later retry may succeed (RFC 9110, RFC 8470, RFC 6585)."""
_FOR_GOOD = frozenset(range(400, 500)) - _LATER
"""HTTP statuses after which a retry would give the same result (RFC 9110, section 15.5)."""
_FIRST_PAUSE = 0.5
_LONGEST_PAUSE = 30.0
"""The longest pause between two tries of a download, in seconds."""


class RefusedRequest(Missing):
    """The server refuses to send the file, or toolkit refuses a redirect. A retry would not help.

    ``status`` is the HTTP status of the server's response.
    """

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class Busy(Missing):
    """The server is busy and asks the client to try again later. ``retry_after`` is the value of the
    response's ``Retry-After`` header, or an empty string if the header is missing.
    """

    def __init__(self, message: str, retry_after: str) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Slow(Missing):
    """The server's response exceeded a limit. Another server with the same file may be faster."""


class Body:
    """A file object for the body of a response. If the server stops before the end of the body, :meth:`read`
    raises :class:`Missing`.

    ``start`` is the offset in the remote file at which the body starts: the requested offset, or 0 if the
    server sends only whole files.
    """

    def __init__(self, response: Response, url: str, limits: Limits, start: int = 0) -> None:
        self.start = start
        self._url = without_login(url)
        self._chunks = response.chunks(_STEP, limits)

    def read(self, size: int = -1) -> bytes:  # noqa: ARG002 - as in a file object
        """Return the next bytes of the file, or ``b""`` at the end of the file. ``size`` has no effect."""
        import requests

        try:
            return next(self._chunks, b"")
        except requests.exceptions.RequestException as error:
            if limit := broken_limit(error):
                raise Slow(f"{self._url}: the download stopped: {limit}") from error
            raise Missing(f"{self._url}: the download stopped: {_reason(error)}") from error


class FileBody:
    """A local file with the interface of :class:`Body`, from the byte ``start`` on."""

    def __init__(self, path: Path, start: int) -> None:
        self.start = start
        self._file = path.open("rb")
        self._file.seek(start)

    def read(self, size: int = -1) -> bytes:
        """Return at most ``size`` bytes of the file, or ``b""`` at the end of the file."""
        return self._file.read(size)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


@contextlib.contextmanager
def open_file_address(url: str, *, start: int = 0) -> Iterator[FileBody]:
    """Open the local file of a ``file:`` URL for reading, from the byte ``start`` on. pip's configuration may
    contain ``file:`` URLs.

    Raises:
        Missing: if the file cannot be read.
    """
    try:
        body = FileBody(Path(urllib.request.url2pathname(urllib.parse.urlsplit(url).path)), start)
    except OSError as error:
        raise Missing(f"{url}: {error.strerror or error}") from error
    try:
        yield body
    finally:
        body.close()


@contextlib.contextmanager
def open_address(
    url: str, *, start: int = 0, seconds: float = 900.0, silence: float = _STALLED
) -> Iterator[Body]:
    """Open an HTTP or HTTPS URL for reading. ``seconds`` limits the time of the whole transfer, and
    ``silence`` limits the time between two bytes, in seconds.

    ``start`` is the number of bytes to skip at the start of the file. If the URL contains a user name and a
    password, toolkit sends them only to the server in this URL, and not to another server after a redirect.

    Raises:
        RefusedRequest: if the server refuses the request, or if toolkit refuses a redirect.
        Busy: if the server asks for a later retry.
        Slow: if the response takes too long.
        Missing: if the server is unreachable, or answers with an HTTP status of 500 or higher.
    """
    shown = without_login(url)
    if not url.startswith(("http://", "https://")):
        raise Missing(f"{shown}: toolkit downloads only from http:// and https:// addresses")
    client = Client(ssl.create_default_context())
    try:
        with _answer(client, url, start, silence) as response:
            if response.status_code >= HTTPStatus.BAD_REQUEST:
                raise _refusal(shown, response)
            begin = start if response.status_code == HTTPStatus.PARTIAL_CONTENT else 0
            yield Body(response, url, of_transfer(seconds=seconds, silence=silence), begin)
    finally:
        client.close()


def pause_before(number: int, retry_after: str = "") -> float:
    """Return the time in seconds to wait before the next try of a request, after ``number`` failures.

    If the value of the ``Retry-After`` header is a number of seconds, return this number, but at most 30.
    If the header is missing or is not a number, the pause is 0.5 seconds after the first failure and doubles
    with each failure, up to 30 seconds. A random factor changes this pause by up to 25 %.
    """
    if retry_after.isascii() and retry_after.isdigit():
        return min(float(retry_after[:6]), _LONGEST_PAUSE)
    spread: float = random.uniform(0.75, 1.25)  # noqa: S311 - not a secret
    return min(_FIRST_PAUSE * 2.0 ** (number - 1), _LONGEST_PAUSE) * spread


def _answer(client: Client, url: str, start: int, silence: float) -> Response:
    import requests

    shown = without_login(url)
    headers = {"Range": f"bytes={start}-"} if start else {}
    limits = Limits(CONTROL_SECONDS, silence)
    try:
        return client.request("GET", shown, headers=headers, proof=_proof(url), limits=limits)
    except BadRedirect as error:
        raise RefusedRequest(f"{shown}: {error.message}", HTTPStatus.FOUND) from error
    except (requests.exceptions.RequestException, ValueError) as error:
        if limit := broken_limit(error):
            raise Slow(f"{shown}: {limit}") from error
        raise Missing(f"{shown}: {_reason(error)}") from error


def _proof(url: str) -> Callable[[str], Proof]:
    """Return the argument ``proof`` of :meth:`.Client.request` for the user name and password in ``url``.

    Only requests to the server of ``url`` get the password (RFC 7617).
    """
    parts = urllib.parse.urlsplit(url)
    if parts.username is None:
        return prove_nothing
    words = (urllib.parse.unquote(word or "") for word in (parts.username, parts.password))
    login = "Basic " + base64.b64encode(":".join(words).encode()).decode()
    server = (parts.scheme, parts.netloc.rpartition("@")[2])

    def proof(address: str) -> Proof:
        def add(request: "requests.PreparedRequest") -> "requests.PreparedRequest":
            if urllib.parse.urlsplit(address)[:2] == server:
                request.headers["Authorization"] = login
            return request

        return add

    return proof


def _refusal(address: str, response: Response) -> Missing:
    message = f"{address}: the server answers {response.status_code} {response.reason}"
    if response.status_code in _LATER:
        return Busy(message, response.headers.get("Retry-After", ""))
    return (
        RefusedRequest(message, response.status_code)
        if response.status_code in _FOR_GOOD
        else Missing(message)
    )


def _reason(error: BaseException) -> str:
    """Return the message of the root cause of ``error``, which is often a system error."""
    while cause := error.__cause__ or error.__context__:
        error = cause
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, http.client.IncompleteRead):
        return "the connection ended early"
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return str(error) or type(error).__name__
