"""A command as a value, what came back, and the protocol of whatever can run one."""

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from toolkit.errors import CheckFailed
from toolkit.run.conversation import Conversation


@dataclass(frozen=True, slots=True)
class Command:
    """Raw words to execute; no shell reads them.

    ``env`` is added to the runner's own environment; ``timeout`` is in seconds.
    """

    words: tuple[str, ...]
    stdin: bytes | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str | None = None
    timeout: float | None = None

    @classmethod
    def of(cls, *words: str, timeout: float | None = None, stdin: bytes | None = None) -> "Command":
        """Make a command from its words."""
        return cls(words, timeout=timeout, stdin=stdin)

    def shown(self) -> str:
        """Return the words as a person would type them."""
        return shlex.join(self.words)


@dataclass(frozen=True, slots=True)
class Completed:
    """How a command ended; ``status`` is its exit status, -N for death by signal N."""

    command: Command
    status: int
    stdout: bytes
    stderr: bytes
    timed_out: bool = False

    @property
    def ok(self) -> bool:
        return self.status == 0 and not self.timed_out

    @property
    def text(self) -> str:
        """Standard output as text; bytes that are no UTF-8 are shown as replacement marks."""
        return self.stdout.decode("utf-8", "replace")

    @property
    def errors(self) -> str:
        return self.stderr.decode("utf-8", "replace")

    def require(self, doing: str, fix: str = "") -> "Completed":
        """Return self if the command succeeded.

        Raises:
            CheckFailed: with the last lines that the command wrote, if it did not.
        """
        if self.ok:
            return self
        how = "timed out" if self.timed_out else f"ended with status {self.status}"
        tail = (self.errors.strip() or self.text.strip()).splitlines()[-12:]
        raise CheckFailed(f"{doing}: {self.command.words[0]} {how}", fix=fix, detail=tail)


OnLine = Callable[[str], None]
OnBytes = Callable[[int, int], None]
"""Progress of a transfer: bytes done, bytes in all."""


class Runner(Protocol):
    """Runs commands in one place and moves files to and from it; paths are the place's own."""

    @property
    def place(self) -> str:
        """Name the place for a person: ``this machine``, ``user@login.example``."""

    def run(self, command: Command) -> Completed:
        """Run to the end and return what came back, whatever the status.

        Raises:
            Missing: if the program or the place cannot be reached.
        """

    def stream(self, command: Command, on_line: OnLine) -> Completed:
        """Run to the end, handing over each line of stdout and stderr as it is written.

        The result holds the last 64 KiB of each at least; what came before may be dropped.
        """

    def converse(self, command: Command) -> Conversation:
        """Start a command that is spoken to while it runs.

        Raises:
            Missing: if the program or the place cannot be reached.
        """

    def send(self, source: Path, target: str, progress: OnBytes | None = None) -> None:
        """Make ``target`` as long as a file here by sending what it has not; its first bytes are believed.

        What was sent before a failure stays. :mod:`toolkit.run.stage` checks all of it and names it.
        ``progress`` is told at once how much was there. Parent folders are made.
        """

    def write(self, target: str, content: bytes, mode: int = 0o644) -> None:
        """Write a small file there atomically; parent folders are made."""

    def read(self, target: str, offset: int = 0, most: int | None = None) -> bytes:
        """Return at most ``most`` bytes of a file there from ``offset``; empty if it does not exist yet."""

    def size(self, target: str) -> int:
        """Return the size of a file there in bytes; 0 if it does not exist yet."""

    def close(self) -> None:
        """Let go of connections."""
