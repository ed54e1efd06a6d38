"""A command as a value, its result, and the protocol of all runners of commands."""

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
        """Create a command from its words."""
        return cls(words, timeout=timeout, stdin=stdin)

    def shown(self) -> str:
        """Return the words as a user would type them in a shell."""
        return shlex.join(self.words)


@dataclass(frozen=True, slots=True)
class Completed:
    """The result of a command; ``status`` is its exit status, -N for signal N."""

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
        """Standard output as text; bytes that are not UTF-8 become replacement marks."""
        return self.stdout.decode("utf-8", "replace")

    @property
    def errors(self) -> str:
        return self.stderr.decode("utf-8", "replace")

    def require(self, doing: str, fix: str = "") -> "Completed":
        """Return self if the command succeeded.

        Raises:
            CheckFailed: with the last lines of the command's output, if it failed.
        """
        if self.ok:
            return self
        how = "timed out" if self.timed_out else f"exited with status {self.status}"
        tail = (self.errors.strip() or self.text.strip()).splitlines()[-12:]
        raise CheckFailed(f"{doing}: {self.command.words[0]} {how}", fix=fix, detail=tail)


OnLine = Callable[[str], None]
OnBytes = Callable[[int, int], None]
"""Progress of a transfer: bytes done, bytes in all."""


class Runner(Protocol):
    """Runs commands in one place and moves files to and from it; paths are the place's own."""

    @property
    def place(self) -> str:
        """The name of the place in messages: ``this machine``, ``user@login.example``."""

    def run(self, command: Command) -> Completed:
        """Run until the command exits and return its result, whatever the status.

        Raises:
            Missing: if the program does not exist or the place is unreachable.
        """

    def stream(self, command: Command, on_line: OnLine) -> Completed:
        """Run until the command exits, passing on each line of stdout and stderr immediately.

        The result holds at least the last 64 KiB of each; earlier output may be dropped.
        """

    def converse(self, command: Command) -> Conversation:
        """Start a command that gets input while it runs.

        Raises:
            Missing: if the program does not exist or the place is unreachable.
        """

    def send(self, source: Path, target: str, progress: OnBytes | None = None) -> None:
        """Complete ``target`` from a file of this machine by sending its missing bytes; its first bytes are
        assumed to be right.

        Bytes that were sent before a failure stay. :mod:`toolkit.run.stage` checks the whole file and renames
        it. ``progress`` is called at once with the number of existing bytes. Parent folders are created.
        """

    def write(self, target: str, content: bytes, mode: int = 0o644) -> None:
        """Write a small file at the place atomically; parent folders are created."""

    def read(self, target: str, offset: int = 0, most: int | None = None) -> bytes:
        """Return at most ``most`` bytes of a file at the place from ``offset``; empty if it does not exist
        yet.
        """

    def size(self, target: str) -> int:
        """Return the size of a file at the place in bytes; 0 if it does not exist yet."""

    def close(self) -> None:
        """Close all connections."""
