"""Delay interrupts while the Docker engine creates a container or another object, so that toolkit can remove
the object.
"""

import contextlib
import signal
import threading
from collections.abc import Iterator

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextlib.contextmanager
def delay_signals() -> Iterator[None]:
    """Delay signals until the ``with`` block ends.

    The ``with`` block asks the Docker engine for a container. The engine creates the container even if an
    interrupt stops toolkit meanwhile. Without the delay, toolkit would not know the new container and could
    not remove it.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # no delay is necessary, because Python delivers signals only to the main thread
        return
    came: list[int] = []
    handlers = {number: signal.signal(number, lambda number, _: came.append(number)) for number in _ENDING}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        if came:
            signal.raise_signal(came[0])
