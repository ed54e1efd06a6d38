"""Run a function in a thread while toolkit does other work."""

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

_T = TypeVar("_T")


class Meanwhile(Generic[_T]):
    """Start a function in a daemon thread. If the user interrupts toolkit, toolkit ends without waiting for
    the function.
    """

    def __init__(self, work: Callable[[], _T]) -> None:
        self._found: list[_T] = []
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(work,), daemon=True)
        self._thread.start()

    def _run(self, work: Callable[[], _T]) -> None:
        try:
            self._found.append(work())
        except BaseException as error:  # noqa: BLE001 - result() raises this error in the caller's thread
            self._error = error

    def result(self) -> _T:
        """Wait until the function ends, and return its result or raise its error."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._found[0]
