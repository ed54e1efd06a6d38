"""Retry a call after a lost connection, with growing pauses. Use this module only for commands that may run
twice.
"""

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from toolkit.errors import Lost
from toolkit.model.progress import Tell
from toolkit.run.command import Command, Completed, OnBytes, OnLine, Runner
from toolkit.run.conversation import Conversation

_T = TypeVar("_T")

OnLost = Callable[[str], None]
"""A function that toolkit calls with the reason for a lost connection. If several tries fail in a row,
toolkit calls the function only after the first failed try.
"""

AWAY_SECONDS = 300.0
"""The number of seconds without a connection after which most toolkit commands stop retrying. Commands that
wait for a job have a longer limit.
"""

_FIRST_PAUSE, _LAST_PAUSE = 1.0, 30.0
"""The first and the largest pause before a retry, in seconds.

The pause doubles each time, so that many clients do not overload a login node that restarts.
"""


def tell_of_loss(tell: Tell) -> OnLost:
    """Return a function that prints the reason for a lost connection and announces the retry."""
    return lambda why: tell.step(f"{why}; trying again")


class PatientRunner:
    """A runner that repeats a query or a copy after a lost connection. The runner gives up when the host has
    been unreachable for ``seconds``.

    Do not use this runner for a command that must run only once, such as sbatch. A ``PatientRunner`` does not
    retry a refused login, because computing centres lock users out after repeated attempts.
    """

    def __init__(self, runner: Runner, on_lost: OnLost, seconds: float = 600.0) -> None:
        self._runner, self._on_lost, self._seconds = runner, on_lost, seconds
        self._stopped = threading.Event()

    @property
    def place(self) -> str:
        return self._runner.place

    def run(self, command: Command) -> Completed:
        return self._try_patiently(lambda: self._runner.run(command))

    def stream(self, command: Command, on_line: OnLine) -> Completed:
        return self._try_patiently(lambda: self._runner.stream(command, on_line))

    def converse(self, command: Command) -> Conversation:
        return self._try_patiently(lambda: self._runner.converse(command))

    def send(self, source: Path, target: str, progress: OnBytes | None = None) -> None:
        arrived = 0

        def heard(transferred: int, total: int) -> None:
            nonlocal arrived
            arrived = max(arrived, transferred)
            if progress:
                progress(transferred, total)

        send = self._runner.send
        patiently(
            lambda: send(source, target, heard),
            self._on_lost,
            self._seconds,
            lambda: arrived,
            self._stopped.is_set,
        )

    def write(self, target: str, content: bytes, mode: int = 0o644) -> None:
        self._try_patiently(lambda: self._runner.write(target, content, mode))

    def read(self, target: str, offset: int = 0, limit: int | None = None) -> bytes:
        return self._try_patiently(lambda: self._runner.read(target, offset, limit))

    def size(self, target: str) -> int:
        return self._try_patiently(lambda: self._runner.size(target))

    def stop(self) -> None:
        """Stop all retries. Call this method when other threads still use this runner, but you no longer
        need their results.
        """
        self._stopped.set()

    def close(self) -> None:
        self._runner.close()

    def _try_patiently(self, call: Callable[[], _T]) -> _T:
        return patiently(call, self._on_lost, self._seconds, is_stopped=self._stopped.is_set)


def patiently(
    call: Callable[[], _T],
    on_lost: OnLost,
    seconds: float,
    count_bytes: Callable[[], int] = lambda: 0,
    is_stopped: Callable[[], bool] = lambda: False,
) -> _T:
    """Repeat a call after a lost connection until the call succeeds, or until the host has been unreachable
    for ``seconds``.

    ``count_bytes`` returns the number of transferred bytes. If bytes arrived since the previous failure, the
    count of seconds starts again at 0.

    Raises:
        Lost: if the host has been unreachable for ``seconds``, or if the connection is lost and
            ``is_stopped`` returns true.
    """
    before, began, pause, warned = count_bytes(), time.monotonic(), _FIRST_PAUSE, False
    while True:
        try:
            return call()
        except Lost as error:
            if count_bytes() > before:
                before, began, pause, warned = count_bytes(), time.monotonic(), _FIRST_PAUSE, False
            if is_stopped() or time.monotonic() - began + pause > seconds:
                raise
            if not warned:
                on_lost(error.message)
                warned = True
        time.sleep(pause)
        pause = min(pause * 2, _LAST_PAUSE)
