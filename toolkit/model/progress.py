"""How long work reports its progress, independent of how it is displayed."""

from typing import Protocol


class Tell(Protocol):
    """A listener for progress; :mod:`toolkit.report.progress` has the listener that prints."""

    def step(self, text: str) -> None:
        """Announce a step that the user waits for, as a sentence without a full stop."""

    def detail(self, text: str) -> None:
        """Give one line of a step's own output, such as a line of a build log."""

    def output(self, text: str) -> None:
        """Print a requested line to standard output, without disturbing the display of progress."""

    def notice(self, text: str) -> None:
        """Show a warning, even if progress is hidden."""


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
