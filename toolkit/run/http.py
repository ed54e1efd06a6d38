"""Read files over HTTP: proxies and certificates as the environment sets them, and never for ever."""

import base64
import contextlib
import http.client
import random
import re
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator

from toolkit import __version__
from toolkit.errors import Missing

_STALLED = 10.0
"""Seconds without a connection or a byte after which a server counts as unreachable."""

_LATER = frozenset({408, 425, 429})
"""Answers of a server that wants to be asked again, and not at once (RFC 6585, section 4)."""
_FOR_GOOD = frozenset(range(400, 500)) - _LATER
"""Answers that do not change by asking again (RFC 9110, section 15.5)."""
_FIRST_PAUSE = 0.5
_LONGEST_PAUSE = 30.0
"""Seconds between tries."""
_LOGIN = re.compile(r"(?<=://)[^/?#\s]*@")


class Refused(Missing):
    """The server answered, and will answer the same when it is asked again: there is no such file.

    ``status`` is what it answered.
    """

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class Busy(Missing):
    """The server wants to be asked again later; ``retry_after`` is what it says of when, or empty."""

    def __init__(self, message: str, retry_after: str) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Body:
    """What a server sends, as a readable file; reading it raises :class:`Missing` if it stops coming.

    ``start`` is the byte that it begins with: what was asked for, or 0 from a server that sends whole files.
    """

    def __init__(self, response: http.client.HTTPResponse, url: str, seconds: float, start: int = 0) -> None:
        self.start = start
        self._response, self._url = response, without_login(url)
        self._deadline = time.monotonic() + seconds
        self._left = response.length

    def read(self, size: int = -1) -> bytes:
        """Return up to ``size`` bytes, none at the end."""
        if time.monotonic() > self._deadline:
            raise Missing(f"{self._url}: comes too slowly")
        try:
            # read1 returns what there is, so that a trickle does not hide behind a large size.
            chunk = self._response.read1(size)
        except (OSError, http.client.HTTPException) as error:
            raise Missing(f"{self._url}: broke off: {_reason(error)}") from error
        if self._left is not None:
            self._left -= len(chunk)
            if self._left and size and not chunk:  # read1 takes an early end for the end
                raise Missing(f"{self._url}: broke off {self._left} bytes before its end")
        return chunk


@contextlib.contextmanager
def opened(
    url: str, *, start: int = 0, accept: str = "", seconds: float = 900.0, stalled: float = _STALLED
) -> Iterator[Body]:
    """Open an http or https address for reading; ``seconds`` limits the whole transfer.

    ``start`` asks for what follows that many bytes, ``accept`` for a form of the answer. A user and password
    in the address are shown to its server alone, and to no other that it sends us to.

    Raises:
        Refused: if the server has no such file.
        Busy: if it is to be asked again later.
        Missing: if there is no such server, or it does not answer.
    """
    shown = without_login(url)
    if not url.startswith(("http://", "https://")):
        raise Missing(f"{shown}: only http and https are read")
    headers = {"User-Agent": f"toolkit/{__version__}"}
    headers |= {"Range": f"bytes={start}-"} if start else {}
    headers |= {"Accept": accept} if accept else {}
    try:
        request = urllib.request.Request(shown, headers=headers)  # noqa: S310 - checked above
        if login := _login(url):
            request.add_unredirected_header("Authorization", login)
        response = urllib.request.urlopen(request, timeout=stalled)  # noqa: S310 - checked above
    except urllib.error.HTTPError as error:
        error.close()  # it is the answer too, with its connection
        raise _refusal(shown, error) from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise Missing(f"{shown}: {_reason(error)}") from error
    with response:
        yield Body(response, url, seconds, start if response.status == http.client.PARTIAL_CONTENT else 0)


def without_login(text: str) -> str:
    """Return a text in which no address has a user and password, so that it may be shown."""
    return _LOGIN.sub("", text)


def pause_before(number: int, retry_after: str = "") -> float:
    """Return the seconds to wait after failure ``number``, as the server asks or doubling, never for long."""
    if retry_after.isascii() and retry_after.isdigit():
        return min(float(retry_after[:6]), _LONGEST_PAUSE)
    spread: float = random.uniform(0.75, 1.25)  # noqa: S311 - not a secret
    return min(_FIRST_PAUSE * 2.0 ** (number - 1), _LONGEST_PAUSE) * spread


def _login(url: str) -> str:
    """Return the header of RFC 7617 for an address that has a user; else an empty text."""
    parts = urllib.parse.urlsplit(url)
    if parts.username is None:
        return ""
    words = (urllib.parse.unquote(word or "") for word in (parts.username, parts.password))
    return "Basic " + base64.b64encode(":".join(words).encode()).decode()


def _refusal(shown: str, error: urllib.error.HTTPError) -> Missing:
    said = f"{shown}: the server answers {error.code} {error.reason}"
    if error.code in _LATER:
        return Busy(said, error.headers.get("Retry-After", ""))
    return Refused(said, error.code) if error.code in _FOR_GOOD else Missing(said)


def _reason(error: Exception) -> str:
    cause = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(cause, TimeoutError):
        return "no answer in time"
    if isinstance(cause, OSError):
        return cause.strerror or str(cause)
    return str(cause) or type(cause).__name__
