"""Show progress on standard error: a terminal shows one line that changes, and a file gets one line for each
step, with the time of day.
"""

import os
import shutil
import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, Self

from toolkit.report.plain import bound_message, make_line_visible
from toolkit.report.safe_stream import unfiltered_stream

if TYPE_CHECKING:
    from rich.live import Live
    from rich.spinner import Spinner
    from rich.text import Text

_REFRESHES = 12.5
"""Refreshes of the progress line per second."""

_MARGIN = 4
"""The width of the spinner and the space around it, in columns of the terminal."""


class Progress:
    """A context manager that shows progress messages to the user.

    If ``verbose`` is true, the user sees every line that ``detail`` receives. If ``quiet`` is true, the user
    does not see the steps. If ``output`` is false, the method ``output`` prints nothing.
    """

    def __init__(self, *, verbose: bool = False, quiet: bool = False, output: bool = True) -> None:
        self._output = output
        self._verbose = verbose
        self._quiet = quiet
        self._live = sys.stderr.isatty() and not verbose and not quiet and os.environ.get("TERM") != "dumb"
        self._spinner: Spinner | None = None
        self._shown: Live | None = None
        self._text = ""
        self._since = 0.0

    def step(self, text: str) -> None:
        if self._quiet:
            return
        self._finish()
        text = bound_message(make_line_visible(text))
        self._text, self._since = text, time.monotonic()
        if self._live:
            from rich.console import Console
            from rich.live import Live
            from rich.spinner import Spinner

            self._spinner = Spinner("dots", text=self._line(""), style="status.spinner")
            self._shown = Live(
                self._spinner,
                # SafeStream would escape the cursor codes of the progress line, so use the unfiltered stream.
                # The text of the progress line contains no control characters at this point.
                console=Console(file=unfiltered_stream(sys.stderr), highlight=False),
                refresh_per_second=_REFRESHES,
                transient=True,
                # By default, rich sends standard output to this console, that is, to standard error.
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self._shown.start()
        else:
            print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)

    def detail(self, text: str) -> None:
        if self._verbose:
            print(f"    {make_line_visible(text)}", file=sys.stderr, flush=True)
        elif self._spinner and self._shown:
            self._spinner.update(text=self._line(make_line_visible(text.strip())))
            self._shown.start()

    def output(self, text: str) -> None:
        if not self._output:
            return
        if self._shown:
            self._shown.stop()  # the next call of detail() shows the progress line again
        # Escape control characters even for a file, because a user may print the file on a terminal later.
        print(make_line_visible(text), flush=True)

    def notice(self, text: str) -> None:
        if self._shown:
            self._shown.stop()
        print(bound_message(make_line_visible(text)), file=sys.stderr, flush=True)

    def _line(self, detail: str) -> "Text":
        """Return the progress line, cut to the terminal's width, because rich cannot erase a wrapped line."""
        from rich.text import Text

        line = Text(self._text).append(f" {detail}" if detail else "", style="dim")
        line.truncate(shutil.get_terminal_size().columns - _MARGIN)
        return line

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self._finish()
        elif self._shown:
            self._shown.stop()

    def _finish(self) -> None:
        if self._shown:
            self._shown.stop()
            took = time.monotonic() - self._since
            print(f"\N{CHECK MARK} {self._text} ({took:.1f} s)", file=sys.stderr, flush=True)
            self._shown = None
