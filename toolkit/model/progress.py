"""How long work tells a person what it is doing, without knowing how that is shown."""

from typing import Protocol


class Tell(Protocol):
    """A listener for progress; :mod:`toolkit.report.progress` has the one that prints."""

    def step(self, text: str) -> None:
        """Announce a step that a person waits for, as a sentence without a full stop."""

    def detail(self, text: str) -> None:
        """Give one line of a step's own output, such as a line of a build log."""

    def output(self, text: str) -> None:
        """Print a line that was asked for to standard output, where what is told does not disturb it."""

    def notice(self, text: str) -> None:
        """Show a warning, even if progress is hidden."""


class Silent:
    """A listener that hears and says nothing."""

    def step(self, text: str) -> None:
        pass

    def detail(self, text: str) -> None:
        pass

    def output(self, text: str) -> None:
        pass

    def notice(self, text: str) -> None:
        pass
