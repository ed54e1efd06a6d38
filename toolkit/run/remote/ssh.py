"""Run commands and move files on another machine over SSH."""

import contextlib
import os
import posixpath
import shlex
import stat
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from toolkit.errors import Lost, Missing
from toolkit.run.command import Command, Completed, OnBytes, OnLine
from toolkit.run.conversation import Conversation, SshConversation
from toolkit.run.folders import folder_mode
from toolkit.run.remote.ssh_connect import connect
from toolkit.run.remote.ssh_destination import destination
from toolkit.run.remote.ssh_exchange import exchange

if TYPE_CHECKING:
    import paramiko

_PACKET = 32768
"""The size of each write to a remote file, in bytes. paramiko sends at most this number of bytes in one write
request (``SFTPFile.MAX_REQUEST_SIZE``).
"""

_ANSWER_SECONDS = 90.0
"""The number of seconds within which the host must answer a file operation or start a command."""


class SshRunner:
    """Runs commands on ``host``, an SSH destination or a ``Host`` alias in the SSH configuration.

    ``config`` replaces the user's ``~/.ssh/config``, as with ``ssh -F``. ``place`` is the name of the host in
    messages; if ``place`` is empty, messages contain ``host``.
    """

    def __init__(self, host: str, config: Path | None = None, place: str = "") -> None:
        destination(host)
        self._place = place or host
        self._host, self._config = host, config
        self._opening = threading.Lock()
        self._connection: Any = connect(host, config)

    @property
    def place(self) -> str:
        return self._place

    def run(self, command: Command) -> Completed:
        return self.stream(command, lambda _: None)

    def stream(self, command: Command, on_line: OnLine) -> Completed:
        with self._speaking(f"cannot run {command.words[0]}"):
            channel = self._connection_now().transport.open_session(timeout=_ANSWER_SECONDS)
            with _time_limit(channel.close):
                channel.exec_command(shell_line(command))
        try:
            return exchange(channel, command, on_line)
        except Lost:
            self.close()
            raise
        finally:
            channel.close()

    def converse(self, command: Command) -> Conversation:
        with self._speaking(f"cannot run {command.words[0]}"):
            channel = self._connection_now().transport.open_session(timeout=_ANSWER_SECONDS)
            with _time_limit(channel.close):
                channel.exec_command(shell_line(command))
        return SshConversation(channel)

    def send(self, source: Path, target: str, progress: OnBytes | None = None) -> None:
        fix = "check the disk and your quota on that host; then run the same command to resume the copy"
        # Open the source file first, so that nothing changes on the host if the source file is missing.
        # If another process deletes the open source file later, toolkit can still read it.
        with source.open("rb") as reading, self._speaking(f"cannot write {target}", fix):
            sftp = self._sftp()
            _make_folder(sftp, posixpath.dirname(target))
            _continue(sftp, reading, target, progress or _ignore_progress)
            sftp.chmod(target, stat.S_IMODE(os.fstat(reading.fileno()).st_mode))

    def write(self, target: str, content: bytes, mode: int = 0o644) -> None:
        with self._placing(target, mode) as (sftp, beside), sftp.open(beside, "wb") as file:
            file.write(content)

    def read(self, target: str, offset: int = 0, limit: int | None = None) -> bytes:
        with self._speaking(f"cannot read {target}"):
            try:
                with self._sftp().open(target, "rb") as file:
                    file.seek(offset)
                    content: bytes = file.read(limit)
                    return content
            except FileNotFoundError:
                return b""

    def size(self, target: str) -> int:
        with self._speaking(f"cannot read {target}"):
            try:
                return self._sftp().stat(target).st_size or 0
            except FileNotFoundError:
                return 0

    def close(self) -> None:
        if self._connection is not None:
            with contextlib.suppress(Exception):  # the connection may already be broken
                self._connection.close()
            self._connection = None

    def _connection_now(self) -> Any:  # noqa: ANN401 - fabric has no types
        """Return the open connection. If the connection was lost, this method opens a new connection."""
        with self._opening:
            if self._connection is None:
                self._connection = connect(self._host, self._config)
            return self._connection

    def _sftp(self) -> "paramiko.SFTPClient":
        connection = self._connection_now()
        with _time_limit(connection.transport.close):
            sftp: paramiko.SFTPClient = connection.sftp()
        sftp.get_channel().settimeout(_ANSWER_SECONDS)
        return sftp

    @contextlib.contextmanager
    def _placing(self, target: str, mode: int) -> Iterator[tuple["paramiko.SFTPClient", str]]:
        """Yield a temporary path in the folder of ``target``. If the ``with`` block succeeds, the file at the
        temporary path replaces ``target``.
        """
        with self._speaking(f"cannot write {target}"):
            sftp = self._sftp()
            beside = _part_name(target)
            _make_folder(sftp, posixpath.dirname(target), folder_mode(mode))
            try:
                yield sftp, beside
                sftp.chmod(beside, mode)
                sftp.posix_rename(beside, target)
            except BaseException:
                with contextlib.suppress(Exception):  # the connection may be broken
                    sftp.remove(beside)
                raise

    @contextlib.contextmanager
    def _speaking(self, fault: str, fix: str = "") -> Iterator[None]:
        import paramiko

        try:
            yield
        except (OSError, EOFError, paramiko.SSHException) as error:
            if self._is_lost(error):
                self.close()
                raise Lost(
                    f"{self.place}: {fault}: the SSH connection was lost", fix="run the same command again"
                ) from error
            raise Missing(f"{self.place}: {fault}: {error or type(error).__name__}", fix=fix) from error

    def _is_lost(self, error: Exception) -> bool:
        """Return whether ``error`` means that the connection was lost, and not that the host refused
        a request.
        """
        import paramiko

        connection = self._connection  # another thread may close the connection
        transport = connection.transport if connection is not None else None
        if transport is None or not transport.is_active():
            return True
        if isinstance(error, paramiko.SSHException):
            # A ChannelException means that the host refused the request.
            return not isinstance(error, paramiko.ChannelException)
        # Also check the error's class, because paramiko may detect the lost connection only after the error.
        return isinstance(error, TimeoutError | EOFError | ConnectionError) or "Socket is closed" in str(
            error
        )


@contextlib.contextmanager
def _time_limit(close: Callable[[], object]) -> Iterator[None]:
    """Call ``close`` if the ``with`` block takes longer than 90 seconds, because paramiko's calls have no
    time limit.
    """

    def give_up() -> None:
        with contextlib.suppress(OSError, EOFError):  # the connection may have ended
            close()

    timer = threading.Timer(_ANSWER_SECONDS, give_up)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def shell_line(command: Command) -> str:
    """Return a command as one line for the login shell of the host, because SSH transmits a command as one
    string.
    """
    words = shlex.join(command.words)
    if command.env:
        words = shlex.join(["env", *(f"{k}={v}" for k, v in command.env.items())]) + " " + words
    if command.cwd:
        words = f"cd -- {shlex.quote(command.cwd)} && {words}"
    return words


def _ignore_progress(_done: int, _total: int) -> None:
    """Do nothing; a progress function for callers that do not show progress."""


def _continue(sftp: "paramiko.SFTPClient", reading: BinaryIO, target: str, progress: OnBytes) -> None:
    """Write the part of a local file that the host's file ``target`` does not contain yet.

    Each byte has the same offset in both files, so two processes can copy the same file at the same time.
    """
    total = os.fstat(reading.fileno()).st_size
    writing, done = _begun(sftp, target, total)
    with writing:
        writing.set_pipelined(True)
        writing.seek(done)
        progress(done, total)
        reading.seek(done)
        while chunk := reading.read(_PACKET):
            writing.write(chunk)
            done += len(chunk)
            progress(done, total)


def _begun(sftp: "paramiko.SFTPClient", target: str, total: int) -> "tuple[paramiko.SFTPFile, int]":
    """Open the file ``target`` on the host for writing, and return the open file and its size in bytes.

    If the file is missing, the function creates it. If the file has more than ``total`` bytes, the function
    first truncates the file to 0 bytes.
    """
    with contextlib.suppress(FileNotFoundError):  # another process may delete the file
        if (done := sftp.stat(target).st_size or 0) <= total:
            return sftp.open(target, "r+b"), done
    return sftp.open(target, "wb"), 0


def _part_name(target: str) -> str:
    folder, name = posixpath.split(target)
    return posixpath.join(folder, f".{name}.{os.getuid()}.{os.getpid()}.part")


def _make_folder(sftp: "paramiko.SFTPClient", folder: str, mode: int = 0o777) -> None:
    if not folder or folder == "/":
        return
    try:
        sftp.stat(folder)
    except FileNotFoundError:
        _make_folder(sftp, posixpath.dirname(folder))
        try:
            sftp.mkdir(folder, mode)
        except OSError:
            sftp.stat(folder)  # another process may have created the folder
