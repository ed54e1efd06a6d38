"""A running command: bytes to its input, bytes from its output."""

import contextlib
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import paramiko

_MOST_ERRORS = 1 << 16


class Conversation(Protocol):
    """One running command; several threads may write at once, one reads."""

    def read(self) -> bytes:
        """Return the program's next output as soon as possible; empty at the end."""

    def write(self, content: bytes) -> None:
        """Send input to the program.

        Raises:
            OSError: if the program accepts no more input.
        """

    def errors(self) -> str:
        """Return the beginning of the program's standard error."""

    def close(self) -> None:
        """Close the program's input; a program that reads its input to the end then exits."""


class SshConversation:
    """A command on a channel of SSH."""

    def __init__(self, channel: "paramiko.Channel") -> None:
        self._channel = channel

    def read(self) -> bytes:
        try:
            content: bytes = self._channel.recv(_MOST_ERRORS)
        except (OSError, EOFError):
            return b""
        return content

    def write(self, content: bytes) -> None:
        self._channel.sendall(content)

    def errors(self) -> str:
        said = b""
        with contextlib.suppress(OSError, EOFError):
            while self._channel.recv_stderr_ready() and len(said) < _MOST_ERRORS:
                said += self._channel.recv_stderr(_MOST_ERRORS)
        return said.decode("utf-8", "replace")

    def close(self) -> None:
        with contextlib.suppress(OSError, EOFError):
            self._channel.shutdown_write()
        self._channel.close()
