"""Progress on stderr: a live line on a terminal, plain dated lines elsewhere."""

import os
import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from rich.status import Status

_RECENT = 60
"""Lines of detail that fit behind a step on a terminal, in characters."""


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

            shown = "".join(c for c in text.strip() if c.isprintable())[:_RECENT]
            self._status.update(f"{escape(self._text)} [dim]{escape(shown)}[/dim]")

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
