"""Exchange values between ranks through the store of :mod:`toolkit.trainers.gloo`, if there is no MPI."""

import contextlib
import math
import time
from email.utils import parsedate_to_datetime
from http.client import HTTPConnection, HTTPException

_SCOPE = "preflight"
_PAUSE = 0.02


class Silence(Exception):
    """The store sent no answer in time, or has closed."""


class Board:
    """The store that the ranks share: each rank can read all entries."""

    def __init__(self, address: str, port: int, deadline: float) -> None:
        # The address ends in a path that only ranks of the job know, as Horovod's own client expects it.
        host, _, path = address.partition("/")
        self._place, self._deadline = (host.partition(":")[0], port), deadline
        self._below = f"/{path}:{port}/{_SCOPE}"
        self._clock = [-math.inf, math.inf]

    @property
    def ahead(self) -> float:
        """Return by how many seconds at least this clock is ahead of the store's clock.

        Each answer has a date in whole seconds, and was sent between the question and the answer.
        """
        least, most = self._clock
        return min(max(0.0, least), most)

    def write(self, key: str, text: str) -> None:
        """Store a value under a key; raise ``Silence`` if the store does not answer."""
        self._ask("PUT", key, text.encode())

    def read(self, key: str) -> str:
        """Wait until a rank has written this key, and return its value; raise ``Silence`` after the limit."""
        while True:
            status, body = self._ask("GET", key)
            if status == 200:
                return body.decode()
            if time.monotonic() > self._deadline:
                raise Silence(key)
            time.sleep(_PAUSE)

    def _ask(self, method: str, key: str, body: bytes | None = None) -> tuple[int, bytes]:
        connection = HTTPConnection(*self._place, timeout=max(1.0, self._deadline - time.monotonic()))
        try:
            asked = time.time()
            connection.request(method, f"{self._below}/{key}", body)
            answer = connection.getresponse()
            self._compare(asked, answer.headers.get("Date"))
            return answer.status, answer.read()
        except (OSError, HTTPException) as error:
            raise Silence(f"the store of rank 0 does not answer: {error}") from None
        finally:
            connection.close()

    def _compare(self, asked: float, date: str | None) -> None:
        with contextlib.suppress(TypeError, ValueError):
            told = parsedate_to_datetime(date or "").timestamp()
            least, most = self._clock
            self._clock = [max(least, asked - told - 1), min(most, time.time() - told)]
