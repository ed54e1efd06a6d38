"""A command, its result, and the interface of runners, which run commands on this or another machine."""

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from toolkit.errors import CheckFailed
from toolkit.run.conversation import Conversation


@dataclass(frozen=True, slots=True)
class Command:
    """A command as a list of words (the program and its arguments), which no shell interprets.

    A runner runs the command on the runner's host. ``stdin`` is the command's standard input. ``env``
    contains variables that the runner adds to the command's environment. ``timeout`` is in seconds. ``cwd``
    is a folder on the runner's host.
    """

    words: tuple[str, ...]
    stdin: bytes | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str | None = None
    timeout: float | None = None

    @classmethod
    def of(cls, *words: str, timeout: float | None = None, stdin: bytes | None = None) -> "Command":
        """Create a command from its words: the program and its arguments."""
        return cls(words, timeout=timeout, stdin=stdin)

    def shown(self) -> str:
        """Return the command as a user would type it in a shell."""
        return shlex.join(self.words)


@dataclass(frozen=True, slots=True)
class Completed:
    """The result of a command. ``status`` is the exit status, or -N if signal N killed the command."""

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

    def require(self, action: str, fix: str = "") -> "Completed":
        """Return this result if the command succeeded.

        Args:
            action: the start of the error message: what the command does, such as "installing the packages".
            fix: what the user can do if the command failed.

        Raises:
            CheckFailed: if the command failed. The error contains the last lines of the command's output.
        """
        if self.ok:
            return self
        how = "timed out" if self.timed_out else f"exited with status {self.status}"
        tail = (self.errors.strip() or self.text.strip()).splitlines()[-12:]
        raise CheckFailed(f"{action}: {self.command.words[0]} {how}", fix=fix, detail=tail)


OnLine = Callable[[str], None]
OnBytes = Callable[[int, int], None]
"""A function that receives the progress of a transfer: the number of bytes so far and the total number."""


class Runner(Protocol):
    """Runs commands on one host, and copies files to and from the host. In all methods of a runner,
    ``target`` is a path on the runner's host.
    """

    @property
    def place(self) -> str:
        """The name of the host in messages, such as ``this machine`` or ``user@login.example``."""

    def run(self, command: Command) -> Completed:
        """Run a command until it exits, and return its result, even if the command fails.

        Raises:
            Missing: if the program does not exist or the host is unreachable.
        """

    def stream(self, command: Command, on_line: OnLine) -> Completed:
        """Run a command until it exits. Pass each line of standard output and standard error to ``on_line``
        as soon as the command writes the line.

        The result contains at least the last 64 KiB of standard output and of standard error; earlier output
        may be missing.
        """

    def converse(self, command: Command) -> Conversation:
        """Start a command, and return a conversation. Through the conversation, the caller sends input and
        reads output while the command runs.

        Raises:
            Missing: if the program does not exist or the host is unreachable.
        """

    def send(self, source: Path, target: str, progress: OnBytes | None = None) -> None:
        """Copy a file of this machine to ``target``. If ``target`` already contains the first part of the
        file, send only the remaining part of the file.

        The runner does not check the existing bytes, and does not delete a partial file after a failure. The
        module :mod:`toolkit.run.stage` checks and renames the complete file. The first call of ``progress``
        receives the number of bytes that ``target`` already contained. The runner creates the parent folders
        of ``target``.
        """

    def write(self, target: str, content: bytes, mode: int = 0o644) -> None:
        """Write a small file on the host atomically, and create its parent folders."""

    def read(self, target: str, offset: int = 0, limit: int | None = None) -> bytes:
        """Return at most ``limit`` bytes of a file on the host, from the byte ``offset``. If ``limit`` is
        None, return all bytes from ``offset``. If the file does not exist, return no bytes.
        """

    def size(self, target: str) -> int:
        """Return the size of a file on the host in bytes, or 0 if the file does not exist."""

    def close(self) -> None:
        """Close all connections."""
