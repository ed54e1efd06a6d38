"""A command, its result, and the protocol of all runners of commands."""

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from toolkit.errors import CheckFailed
from toolkit.run.conversation import Conversation


@dataclass(frozen=True, slots=True)
class Command:
    """The words of a command; no shell interprets them.

    ``env`` is added to the runner's own environment. ``timeout`` is in seconds.
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
    """The result of a command; ``status`` is its exit status, or -N if signal N ended the command."""

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
        """Standard output as text; invalid UTF-8 bytes become replacement characters."""
        return self.stdout.decode("utf-8", "replace")

    @property
    def errors(self) -> str:
        return self.stderr.decode("utf-8", "replace")

    def require(self, doing: str, fix: str = "") -> "Completed":
        """Return this result if the command succeeded.

        Raises:
            CheckFailed: if the command failed, with the last lines of its output.
        """
        if self.ok:
            return self
        how = "timed out" if self.timed_out else f"exited with status {self.status}"
        tail = (self.errors.strip() or self.text.strip()).splitlines()[-12:]
        raise CheckFailed(f"{doing}: {self.command.words[0]} {how}", fix=fix, detail=tail)


OnLine = Callable[[str], None]
OnBytes = Callable[[int, int], None]
"""A function that receives the progress of a transfer: bytes done, and bytes in total."""


class Runner(Protocol):
    """Runs commands on one host, and copies files to and from the host; paths are paths on this host."""

    @property
    def place(self) -> str:
        """The name of the host in messages, such as ``this machine`` or ``user@login.example``."""

    def run(self, command: Command) -> Completed:
        """Run a command until it exits, and return its result, also after a failure.

        Raises:
            Missing: if the program does not exist or the host is unreachable.
        """

    def stream(self, command: Command, on_line: OnLine) -> Completed:
        """Run a command until it exits, and pass on each line of its output and errors immediately.

        The result contains at least the last 64 KiB of each stream; earlier output may be missing.
        """

    def converse(self, command: Command) -> Conversation:
        """Start a command that receives input while it runs.

        Raises:
            Missing: if the program does not exist or the host is unreachable.
        """

    def send(self, source: Path, target: str, progress: OnBytes | None = None) -> None:
        """Copy a file of this machine to ``target``; bytes that already exist there are not sent again.

        Existing bytes are assumed to be correct. Bytes that were sent before a failure remain, and
        :mod:`toolkit.run.stage` checks and renames the complete file. ``progress`` is first called with the
        number of existing bytes. Parent folders are created.
        """

    def write(self, target: str, content: bytes, mode: int = 0o644) -> None:
        """Write a small file on the host atomically; parent folders are created."""

    def read(self, target: str, offset: int = 0, most: int | None = None) -> bytes:
        """Return at most ``most`` bytes of a file on the host from ``offset``; empty if there is no file."""

    def size(self, target: str) -> int:
        """Return the size of a file on the host in bytes, or 0 if the file does not exist."""

    def close(self) -> None:
        """Close all connections."""
