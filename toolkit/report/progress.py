"""Progress on stderr: a live line on a terminal, plain dated lines elsewhere."""

import os
import shutil
import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from rich.status import Status

_MARGIN = 4
"""Columns of a terminal that a spinner needs."""


class Progress:
    """Tells a person what is being done; use as a context manager and hand to what works.

    ``verbose`` shows every line of detail, ``quiet`` nothing at all.
    """

    def __init__(self, *, verbose: bool = False, quiet: bool = False) -> None:
        self._verbose = verbose
        self._quiet = quiet
        self._live = sys.stderr.isatty() and not verbose and not quiet and os.environ.get("TERM") != "dumb"
        self._status: Status | None = None
        self._text = ""
        self._since = 0.0

    def step(self, text: str) -> None:
        if self._quiet:
            return
        self._finish()
        self._text, self._since = text, time.monotonic()
        if self._live:
            from rich.console import Console

            self._status = Console(stderr=True, highlight=False).status(text, spinner="dots")
            self._status.start()
        else:
            print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)

    def detail(self, text: str) -> None:
        if self._verbose:
            print(f"    {text}", file=sys.stderr, flush=True)
        elif self._status:
            from rich.markup import escape

            # A line that is longer than the terminal would not be taken away again.
            columns = shutil.get_terminal_size().columns - _MARGIN
            step = self._text[:columns]
            shown = "".join(c for c in text.strip() if c.isprintable())[: max(columns - len(step) - 1, 0)]
            self._status.update(f"{escape(step)} [dim]{escape(shown)}[/dim]")
            self._status.start()

    def output(self, text: str) -> None:
        if self._status:
            self._status.stop()  # the next detail brings it back, below what is printed now
        print(text, flush=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self._finish()
        elif self._status:
            self._status.stop()

    def _finish(self) -> None:
        if self._status:
            self._status.stop()
            took = time.monotonic() - self._since
            print(f"\N{CHECK MARK} {self._text} ({took:.1f} s)", file=sys.stderr, flush=True)
            self._status = None
