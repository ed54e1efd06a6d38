"""Limits on one answer of a server, enforced at its socket: seconds of waiting, bytes, and bytes a second.

HTTP libraries limit the time between two bytes only. At the socket, the limits also count headers, chunk
sizes and trailers, which those libraries read by themselves.
"""

import math
import socket
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

CONTROL_SECONDS = 60.0
"""Seconds for the whole of an answer that is not a file: a manifest, a token, an error, headers."""
CONTROL_BYTES = 16 << 20
"""Largest answer of a registry: 4 MiB of manifest, and 6.4 MiB of headers, the limit of ``http.client``."""
SLOWEST = 1024
"""Bytes a second of a file, below which the transfer is given up."""
WINDOW = 60.0
"""Seconds of waiting over which the rate of a transfer is measured."""


class LimitError(OSError):
    """A server broke a limit; the text says which."""


class SlowError(LimitError, TimeoutError):
    """The answer takes too long, or comes too slowly."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one answer.

    ``seconds`` limits the time spent waiting for bytes, ``silence`` the time between two of them. ``most``
    is the number of bytes. ``slowest`` is the least rate in bytes a second, measured over :data:`WINDOW`.
    """

    seconds: float = CONTROL_SECONDS
    silence: float = CONTROL_SECONDS
    most: float = CONTROL_BYTES
    slowest: float = 0.0


def of_transfer(size: float = math.inf, seconds: float = math.inf, silence: float = WINDOW) -> Limits:
    """Return the limits of a file of ``size`` bytes.

    A total limit in seconds cannot fit both a small and a large file, so the rate is limited instead. Twice
    the size leaves room for the framing of small chunks.
    """
    return Limits(seconds, silence, 2 * size + CONTROL_BYTES, SLOWEST)


class Meter:
    """Counts what the sockets of one client receive; :meth:`begin` starts the count for an answer."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.begin(Limits())

    def begin(self, limits: Limits) -> None:
        """Apply ``limits`` to the bytes that arrive from now on."""
        self._limits = limits
        self._waited = self._got = 0.0
        self._window = (0.0, 0.0)

    def receive(self, sock: socket.socket, receive: Callable[[], Any]) -> Any:  # noqa: ANN401 - bytes or a count
        """Call ``receive``, which waits for bytes of ``sock``, within the limits.

        Raises:
            SlowError: if the time is over, or the rate too low.
            LimitError: if more bytes come than the limits allow.
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
        if self._got > self._limits.most:
            raise LimitError(f"it sends more than {self._limits.most / (1 << 20):.0f} MiB")
        waited, got = self._window[0] + seconds, self._window[1] + count
        if waited >= WINDOW:
            if got < self._limits.slowest * waited:
                raise SlowError(f"it sends less than {self._limits.slowest:g} bytes a second")
            waited = got = 0.0
        self._window = (waited, got)

    def _late(self) -> SlowError:
        return SlowError(f"its answer is not complete after {self._limits.seconds:g} seconds")


class MeteredSocket(socket.socket):
    """A socket whose bytes a meter counts."""

    meter: Meter | None = None

    def recv(self, *words: Any) -> bytes:  # noqa: ANN401 - the arguments of socket.recv
        return _receive(self, lambda: super(MeteredSocket, self).recv(*words))  # type: ignore[no-any-return]  # bytes

    def recv_into(self, *words: Any) -> int:  # noqa: ANN401 - the arguments of socket.recv_into
        return _receive(self, lambda: super(MeteredSocket, self).recv_into(*words))  # type: ignore[no-any-return]  # int


class MeteredTls(ssl.SSLSocket):
    """The same over TLS; the handshake has the limit of the connection attempt."""

    meter: Meter | None = None

    def recv(self, *words: Any) -> bytes:  # noqa: ANN401 - the arguments of socket.recv
        return _receive(self, lambda: super(MeteredTls, self).recv(*words))  # type: ignore[no-any-return]  # bytes

    def recv_into(self, *words: Any) -> int:  # noqa: ANN401 - the arguments of socket.recv_into
        return _receive(self, lambda: super(MeteredTls, self).recv_into(*words))  # type: ignore[no-any-return]  # int


def meter_socket(sock: socket.socket, meter: Meter) -> MeteredSocket:
    """Return ``sock`` as a socket that ``meter`` counts; ``sock`` itself is used up."""
    timeout = sock.gettimeout()
    made = MeteredSocket(sock.family, sock.type, sock.proto, fileno=sock.detach())
    made.settimeout(timeout)
    made.meter = meter
    return made


def broken_limit(error: BaseException | None) -> LimitError | None:
    """Return the limit behind an error of an HTTP library; ``None`` for any other error."""
    while error is not None and not isinstance(error, LimitError):
        error = error.__cause__ or error.__context__
    return error


def _receive(sock: MeteredSocket | MeteredTls, receive: Callable[[], Any]) -> Any:  # noqa: ANN401 - see Meter.receive
    return sock.meter.receive(sock, receive) if sock.meter else receive()
