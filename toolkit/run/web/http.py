"""Read files over HTTP, with the environment's proxies and certificates, and with time limits."""

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
"""Seconds without a connection or a byte after which a server counts as unreachable."""
_STEP = 1 << 16
"""Bytes at a time; an interruption loses the last step."""

_LATER = frozenset({408, 425, 429})
"""Statuses of a server that asks for a later retry (RFC 6585, section 4)."""
_FOR_GOOD = frozenset(range(400, 500)) - _LATER
"""Statuses that a retry does not change (RFC 9110, section 15.5)."""
_FIRST_PAUSE = 0.5
_LONGEST_PAUSE = 30.0
"""The most seconds between two tries."""


class Refused(Missing):
    """The server's answer is final: no such file.

    ``status`` is the status of the answer.
    """

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class Busy(Missing):
    """The server asks for a later retry; ``retry_after`` is its time for that, or empty."""

    def __init__(self, message: str, retry_after: str) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Slow(Missing):
    """The server sends too little for too long; another source may be faster."""


class Body:
    """The body of an answer as a readable file. Reading raises :class:`Missing` if the server stops sending.

    ``start`` is the first byte of the answer: the requested byte, or 0 from a server that only sends whole
    files.
    """

    def __init__(self, response: Response, url: str, limits: Limits, start: int = 0) -> None:
        self.start = start
        self._url = without_login(url)
        self._chunks = response.chunks(_STEP, limits)

    def read(self, size: int = -1) -> bytes:  # noqa: ARG002 - the signature of a file
        """Return some bytes, none at the end."""
        import requests

        try:
            return next(self._chunks, b"")
        except requests.exceptions.RequestException as error:
            if limit := broken_limit(error):
                raise Slow(f"{self._url}: broke off: {limit}") from error
            raise Missing(f"{self._url}: broke off: {_reason(error)}") from error


class FileBody:
    """A file of this machine instead of a server's answer, from the byte ``start`` on."""

    def __init__(self, path: Path, start: int) -> None:
        self.start = start
        self._file = path.open("rb")
        self._file.seek(start)

    def read(self, size: int = -1) -> bytes:
        """Return some bytes, none at the end."""
        return self._file.read(size)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


@contextlib.contextmanager
def open_file_address(url: str, *, start: int = 0) -> Iterator[FileBody]:
    """Open a ``file:`` address, which pip's configuration may name, as :func:`open_address` opens others.

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
    url: str, *, start: int = 0, seconds: float = 900.0, stalled: float = _STALLED
) -> Iterator[Body]:
    """Open an http or https address for reading; ``seconds`` limits the whole transfer.

    ``start`` skips that many bytes. A user and password in the address are only sent to its server, not to
    any redirect.

    Raises:
        Refused: if the server does not have the file, or redirects to an address that is not followed.
        Busy: if the server asks for a later retry.
        Slow: if the server's answer takes too long.
        Missing: if the server does not exist or does not answer.
    """
    shown = without_login(url)
    if not url.startswith(("http://", "https://")):
        raise Missing(f"{shown}: toolkit reads only http and https")
    client = Client(ssl.create_default_context())
    try:
        with _answer(client, url, start, stalled) as response:
            if response.status_code >= HTTPStatus.BAD_REQUEST:
                raise _refusal(shown, response)
            begin = start if response.status_code == HTTPStatus.PARTIAL_CONTENT else 0
            yield Body(response, url, of_transfer(seconds=seconds, silence=stalled), begin)
    finally:
        client.close()


def pause_before(number: int, retry_after: str = "") -> float:
    """Return the seconds to wait after failure ``number``: the server's value or doubling, with a limit."""
    if retry_after.isascii() and retry_after.isdigit():
        return min(float(retry_after[:6]), _LONGEST_PAUSE)
    spread: float = random.uniform(0.75, 1.25)  # noqa: S311 - not a secret
    return min(_FIRST_PAUSE * 2.0 ** (number - 1), _LONGEST_PAUSE) * spread


def _answer(client: Client, url: str, start: int, stalled: float) -> Response:
    import requests

    shown = without_login(url)
    headers = {"Range": f"bytes={start}-"} if start else {}
    limits = Limits(CONTROL_SECONDS, stalled)
    try:
        return client.request("GET", shown, headers=headers, proof=_proof(url), limits=limits)
    except BadRedirect as error:
        raise Refused(f"{shown}: {error.message}", HTTPStatus.FOUND) from error
    except (requests.exceptions.RequestException, ValueError) as error:
        if limit := broken_limit(error):
            raise Slow(f"{shown}: {limit}") from error
        raise Missing(f"{shown}: {_reason(error)}") from error


def _proof(url: str) -> Callable[[str], Proof]:
    """Return the authentication of ``url``, only for its server (RFC 7617)."""
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


def _refusal(shown: str, response: Response) -> Missing:
    said = f"{shown}: the server answers {response.status_code} {response.reason}"
    if response.status_code in _LATER:
        return Busy(said, response.headers.get("Retry-After", ""))
    return Refused(said, response.status_code) if response.status_code in _FOR_GOOD else Missing(said)


def _reason(error: BaseException) -> str:
    """Return the message of the innermost error of HTTP libraries."""
    while cause := error.__cause__ or error.__context__:
        error = cause
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, http.client.IncompleteRead):
        return "the connection ended early"
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return str(error) or type(error).__name__
