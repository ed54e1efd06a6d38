"""Exchange values between ranks without MPI. The values pass through the HTTP store, a small server that
:mod:`toolkit.trainers.gloo` starts on rank 0.
"""

import contextlib
import math
import time
from email.utils import parsedate_to_datetime
from http.client import HTTPConnection, HTTPException

_SCOPE = "preflight"
_PAUSE = 0.02


class Silence(Exception):
    """The HTTP store on rank 0 did not answer, or a rank did not write an expected value in time."""


class Board:
    """A client of the HTTP store on rank 0. Each rank can write values and read the values of all ranks.

    ``deadline`` is the value of ``time.monotonic()`` after which the client stops waiting for a value.
    """

    def __init__(self, address: str, port: int, deadline: float) -> None:
        # The address ends in a secret URL path. The HTTP store rejects requests without this path.
        host, _, path = address.partition("/")
        self._place, self._deadline = (host.partition(":")[0], port), deadline
        self._below = f"/{path}:{port}/{_SCOPE}"
        self._clock = [-math.inf, math.inf]

    @property
    def ahead(self) -> float:
        """The number of seconds by which this node's clock is ahead of the clock on rank 0's node, negative
        if this node's clock is behind.

        The exact difference is unknown, because the ``Date`` headers in the HTTP store's answers have whole
        seconds. The headers set a lower and an upper limit for the difference. The result is the value
        between these limits that is closest to 0.
        """
        least, most = self._clock
        return min(max(0.0, least), most)

    def write(self, key: str, text: str) -> None:
        """Store ``text`` under ``key``. Raise ``Silence`` if the HTTP store does not answer."""
        self._ask("PUT", key, text.encode())

    def read(self, key: str) -> str:
        """Wait until a rank has written a value under ``key``, and return the value. Raise ``Silence`` if no
        rank writes a value before the deadline, or the HTTP store does not answer.
        """
        while True:
            status, body = self._ask("GET", key)
            if status == 200:
                return body.decode()
            if time.monotonic() > self._deadline:
                raise Silence(f"no rank wrote the value {key} to the HTTP store within the time limit")
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
            raise Silence(f"the HTTP store on rank 0 does not answer: {error}") from None
        finally:
            connection.close()

    def _compare(self, request_time: float, answer_date: str | None) -> None:
        with contextlib.suppress(TypeError, ValueError):
            told = parsedate_to_datetime(answer_date or "").timestamp()
            least, most = self._clock
            self._clock = [max(least, request_time - told - 1), min(most, time.time() - told)]
