"""The interface through which long tasks report progress; each listener decides what to print."""

from typing import Protocol


class Tell(Protocol):
    """A listener for progress messages; :mod:`toolkit.report.progress` contains the listener that prints the
    messages.
    """

    def step(self, text: str) -> None:
        """Report the start of a step for which the user waits. ``text`` describes the step, and has no full
        stop at its end.
        """

    def detail(self, text: str) -> None:
        """Report one line of a step's output, such as a line of a build log."""

    def output(self, text: str) -> None:
        """Print a line of results to standard output without disturbing the progress display."""

    def notice(self, text: str) -> None:
        """Print a warning, even if the listener hides progress."""


class Silent:
    """A listener that prints nothing."""

    def step(self, text: str) -> None:
        pass

    def detail(self, text: str) -> None:
        pass

    def output(self, text: str) -> None:
        pass

    def notice(self, text: str) -> None:
        pass
