"""Limit the waiting time, the number of bytes, and the bytes per second of an HTTP response at its socket.

HTTP libraries limit only the time between two bytes. Limits at the socket also apply to headers, chunk sizes
and trailers.
"""

import math
import socket
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

CONTROL_SECONDS = 60.0
"""The time limit, in seconds, for a short response: a manifest, a token, an error or headers."""
CONTROL_BYTES = 16 << 20
"""The largest response of a container registry in bytes, except for blobs such as image layers.

This limit has room for a manifest of 4 MiB and for headers of 6.4 MiB, the largest headers that
``http.client`` accepts.
"""
SLOWEST = 1024
"""The lowest rate of a file transfer in bytes per second. toolkit aborts a slower transfer."""
WINDOW = 60.0
"""toolkit adds up the time for which it waits for bytes. Each time the sum reaches this number of seconds,
toolkit checks the rate of the transfer.
"""


class LimitError(OSError):
    """A server exceeded a limit on its response; the error's text names the limit."""


class SlowError(LimitError, TimeoutError):
    """The response takes too long, or its rate is too low."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits on one HTTP response.

    ``seconds`` limits the total time of waiting for bytes. ``silence`` limits the time between two bytes.
    ``max_bytes`` limits the received bytes, including headers. ``min_rate`` is the lowest permitted rate in
    bytes per second, measured over :data:`WINDOW` seconds.
    """

    seconds: float = CONTROL_SECONDS
    silence: float = CONTROL_SECONDS
    max_bytes: float = CONTROL_BYTES
    min_rate: float = 0.0


def of_transfer(size: float = math.inf, seconds: float = math.inf, silence: float = WINDOW) -> Limits:
    """Return the limits for the transfer of a file of ``size`` bytes. ``seconds`` limits the total waiting
    time, and ``silence`` limits the time between two bytes, in seconds.

    By default, toolkit does not limit the total time, because a large file needs more time than a small file.
    Instead, toolkit aborts a transfer that is slower than :data:`SLOWEST`. The maximum number of bytes is
    more than twice ``size``, because a response in small chunks has many chunk headers.
    """
    return Limits(seconds, silence, 2 * size + CONTROL_BYTES, SLOWEST)


class Meter:
    """Counts the bytes that the sockets of one client receive, and enforces the limits on a response."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.begin(Limits())

    def begin(self, limits: Limits) -> None:
        """Apply ``limits`` to the bytes that arrive after this call, and restart the counts."""
        self._limits = limits
        self._waited = self._got = 0.0
        self._window = (0.0, 0.0)

    def receive(self, sock: socket.socket, receive: Callable[[], Any]) -> Any:  # noqa: ANN401 - bytes or their number
        """Call ``receive``, which waits for bytes on ``sock``, and return its result. Enforce the limits that
        :meth:`begin` set.

        Raises:
            SlowError: if the total time limit is exceeded, or the rate is too low.
            TimeoutError: if no byte arrives within ``Limits.silence`` seconds.
            LimitError: if the server sends more bytes than the limits allow.
        """
        left = self._limits.seconds - self._waited
        if left <= 0:
            raise self._late()
        own = sock.gettimeout()
        sock.settimeout(min(left, self._limits.silence))
        begun = self._clock()
        try:
            received = receive()
        except TimeoutError as error:
            if left <= self._limits.silence:
                raise self._late() from error
            raise
        finally:
            sock.settimeout(own)
        self._count(self._clock() - begun, received if isinstance(received, int) else len(received))
        return received

    def _count(self, seconds: float, count: int) -> None:
        self._waited += seconds
        self._got += count
        if self._got > self._limits.max_bytes:
            raise LimitError(f"the server sends more than {self._limits.max_bytes / (1 << 20):.0f} MiB")
        waited, received = self._window[0] + seconds, self._window[1] + count
        if waited >= WINDOW:
            if received < self._limits.min_rate * waited:
                raise SlowError(f"the server sends less than {self._limits.min_rate:g} bytes a second")
            waited = received = 0.0
        self._window = (waited, received)

    def _late(self) -> SlowError:
        return SlowError(f"the server's answer is not complete after {self._limits.seconds:g} seconds")


class MeteredSocket(socket.socket):
    """A socket without TLS whose ``meter`` counts the received bytes and enforces limits."""

    meter: Meter | None = None

    def recv(self, *words: Any) -> bytes:  # noqa: ANN401 - the arguments of socket.recv
        return _receive(self, lambda: super(MeteredSocket, self).recv(*words))  # type: ignore[no-any-return]  # bytes

    def recv_into(self, *words: Any) -> int:  # noqa: ANN401 - the arguments of socket.recv_into
        return _receive(self, lambda: super(MeteredSocket, self).recv_into(*words))  # type: ignore[no-any-return]  # int


class MeteredTls(ssl.SSLSocket):
    """A TLS socket whose ``meter`` counts the received bytes and enforces limits.

    The ``meter`` does not measure the TLS handshake. The time limit for opening the connection also applies
    to the handshake.
    """

    meter: Meter | None = None

    def recv(self, *words: Any) -> bytes:  # noqa: ANN401 - the arguments of socket.recv
        return _receive(self, lambda: super(MeteredTls, self).recv(*words))  # type: ignore[no-any-return]  # bytes

    def recv_into(self, *words: Any) -> int:  # noqa: ANN401 - the arguments of socket.recv_into
        return _receive(self, lambda: super(MeteredTls, self).recv_into(*words))  # type: ignore[no-any-return]  # int


def meter_socket(sock: socket.socket, meter: Meter) -> MeteredSocket:
    """Return a metered socket that replaces ``sock``. The caller must not use ``sock`` afterwards."""
    timeout = sock.gettimeout()
    metered = MeteredSocket(sock.family, sock.type, sock.proto, fileno=sock.detach())
    metered.settimeout(timeout)
    metered.meter = meter
    return metered


def broken_limit(error: BaseException | None) -> LimitError | None:
    """Return the first :class:`LimitError` among ``error`` and its causes, or ``None`` without one."""
    while error is not None and not isinstance(error, LimitError):
        error = error.__cause__ or error.__context__
    return error


def _receive(sock: MeteredSocket | MeteredTls, receive: Callable[[], Any]) -> Any:  # noqa: ANN401 - see Meter.receive
    return sock.meter.receive(sock, receive) if sock.meter else receive()
