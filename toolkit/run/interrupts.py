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
    """Delay SIGINT, SIGTERM and SIGHUP until the ``with`` block ends, and then raise the first delayed
    signal.

    In the ``with`` block, toolkit asks the Docker engine to create a container or another object. The engine
    creates the object even if a signal stops toolkit before the engine answers. Without the delay, toolkit
    would not know that the object exists, and would not remove it.
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
