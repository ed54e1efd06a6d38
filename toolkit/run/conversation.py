"""Exchange bytes with a command while the command runs."""

import contextlib
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import paramiko

_MOST_ERRORS = 1 << 16


class Conversation(Protocol):
    """A running command. Several threads may write to the command's input, but only one thread may read the
    command's output.
    """

    def read(self) -> bytes:
        """Wait for the next output of the command, and return it. After the end of the output, return no
        bytes.
        """

    def write(self, content: bytes) -> None:
        """Send input to the command.

        Raises:
            OSError: if the command accepts no more input.
        """

    def errors(self) -> str:
        """Return the beginning of the command's standard error as text."""

    def close(self) -> None:
        """Close the command's input. A command that reads all its input, such as ``cat``, then exits."""


class SshConversation:
    """A command that runs on another machine through an SSH channel."""

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
        errors = b""
        with contextlib.suppress(OSError, EOFError):
            while self._channel.recv_stderr_ready() and len(errors) < _MOST_ERRORS:
                errors += self._channel.recv_stderr(_MOST_ERRORS)
        return errors.decode("utf-8", "replace")

    def close(self) -> None:
        with contextlib.suppress(OSError, EOFError):
            self._channel.shutdown_write()
        self._channel.close()
