"""Read files over HTTP: proxies and certificates as the environment sets them, and never for ever."""

import contextlib
import http.client
import time
import urllib.error
import urllib.request
from collections.abc import Iterator

from toolkit import __version__
from toolkit.errors import Missing

_STALLED = 10.0
"""Seconds without a connection or a byte after which a server counts as unreachable."""

_FOR_GOOD = range(400, 500)
"""Answers that do not change by asking again (RFC 9110, section 15.5)."""


class Refused(Missing):
    """The server answered, and will answer the same when it is asked again: there is no such file."""


class Body:
    """What a server sends, as a readable file; reading it raises :class:`Missing` if it stops coming.

    ``start`` is the byte that it begins with: what was asked for, or 0 from a server that sends whole files.
    """

    def __init__(self, response: http.client.HTTPResponse, url: str, seconds: float, start: int = 0) -> None:
        self.start = start
        self._response, self._url = response, url
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

    ``start`` asks for what follows that many bytes, ``accept`` for a form of the answer.

    Raises:
        Refused: if the server has no such file.
        Missing: if there is no such server, or it does not answer.
    """
    if not url.startswith(("http://", "https://")):
        raise Missing(f"{url}: only http and https are read")
    headers = {"User-Agent": f"toolkit/{__version__}"}
    headers |= {"Range": f"bytes={start}-"} if start else {}
    headers |= {"Accept": accept} if accept else {}
    request = urllib.request.Request(url, headers=headers)  # noqa: S310 - checked above
    try:
        response = urllib.request.urlopen(request, timeout=stalled)  # noqa: S310 - checked above
    except urllib.error.HTTPError as error:
        error.close()  # it is the answer too, with its connection
        kind = Refused if error.code in _FOR_GOOD else Missing
        raise kind(f"{url}: the server answers {error.code} {error.reason}") from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise Missing(f"{url}: {_reason(error)}") from error
    with response:
        yield Body(response, url, seconds, start if response.status == http.client.PARTIAL_CONTENT else 0)


def _reason(error: Exception) -> str:
    cause = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(cause, TimeoutError):
        return "no answer in time"
    if isinstance(cause, OSError):
        return cause.strerror or str(cause)
    return str(cause) or type(cause).__name__
