"""Run commands and move files on another machine over SSH."""

import contextlib
import getpass
import os
import posixpath
import re
import shlex
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.errors import BadInput, Missing
from toolkit.run.command import Command, Completed, OnBytes, OnLine
from toolkit.run.ssh_connect import connect
from toolkit.run.ssh_exchange import exchange

if TYPE_CHECKING:
    import paramiko

_PORT = re.compile(r"(?:.*@)?[^:@]*:([^:@]*)")
"""HOST:PORT; more colons than one make an IPv6 address, which takes no port."""


class SshRunner:
    """Commands on ``host``, an SSH destination or a ``Host`` alias of the SSH configuration.

    ``config`` replaces the person's own ``~/.ssh/config``, as ``ssh -F`` does. ``place`` is what people
    call it, where that is more than ``host``.
    """

    def __init__(self, host: str, config: Path | None = None, place: str = "") -> None:
        if not host or host.startswith("-") or any(c.isspace() for c in host):
            raise BadInput(f"--host {host!r}: not an SSH destination; give HOST, USER@HOST or USER@HOST:PORT")
        if (port := _PORT.fullmatch(host)) and not (
            port[1].isdecimal() and len(port[1]) < 6 and 0 < int(port[1]) < 1 << 16
        ):
            raise BadInput(f"--host {host}: {port[1]!r} is no port; ports are 1 to 65535")
        self._place = place or host
        self._connection = connect(host, config)

    @property
    def place(self) -> str:
        return self._place

    def run(self, command: Command) -> Completed:
        return self.stream(command, lambda _: None)

    def stream(self, command: Command, on_line: OnLine) -> Completed:
        with self._speaking(f"cannot run {command.words[0]}"):
            channel = self._connection.create_session()
            channel.exec_command(shell_line(command))
        try:
            return exchange(channel, command, on_line)
        finally:
            channel.close()

    def upload(self, source: Path, target: str, progress: OnBytes | None = None) -> None:
        mode = stat.S_IMODE(source.stat().st_mode)
        with self._placing(target, mode) as (sftp, beside):
            sftp.put(str(source), beside, callback=progress, confirm=True)

    def write(self, target: str, content: bytes, mode: int = 0o644) -> None:
        with self._placing(target, mode) as (sftp, beside), sftp.open(beside, "wb") as file:
            file.write(content)

    def read(self, target: str, offset: int = 0) -> bytes:
        with self._speaking(f"cannot read {target}"):
            try:
                with self._connection.sftp().open(target, "rb") as file:
                    file.seek(offset)
                    content: bytes = file.read()
                    return content
            except FileNotFoundError:
                return b""

    def close(self) -> None:
        self._connection.close()

    @contextlib.contextmanager
    def _placing(self, target: str, mode: int) -> Iterator[tuple["paramiko.SFTPClient", str]]:
        """Give a name beside ``target`` to write to; it takes the target's place if all went well."""
        with self._speaking(f"cannot write {target}"):
            sftp = self._connection.sftp()
            beside = _beside(target)
            _make_folder(sftp, posixpath.dirname(target))
            try:
                yield sftp, beside
                sftp.chmod(beside, mode)
                sftp.posix_rename(beside, target)
            except BaseException:
                with contextlib.suppress(Exception):  # the connection may be what failed
                    sftp.remove(beside)
                raise

    @contextlib.contextmanager
    def _speaking(self, what: str) -> Iterator[None]:
        import paramiko

        try:
            yield
        except (OSError, EOFError, paramiko.SSHException) as error:
            transport = self._connection.transport
            if transport is None or not transport.is_active():
                raise Missing(
                    f"{self.place}: {what}: the SSH connection was lost", fix="run the same command again"
                ) from error
            raise Missing(f"{self.place}: {what}: {error or type(error).__name__}") from error


def shell_line(command: Command) -> str:
    """Return the line that the far login shell is given; SSH carries a line, never words."""
    words = shlex.join(command.words)
    if command.env:
        words = shlex.join(["env", *(f"{k}={v}" for k, v in command.env.items())]) + " " + words
    if command.cwd:
        words = f"cd -- {shlex.quote(command.cwd)} && {words}"
    return words


def _beside(target: str) -> str:
    folder, name = posixpath.split(target)
    return posixpath.join(folder, f".{name}.{getpass.getuser()}.{os.getpid()}.part")


def _make_folder(sftp: "paramiko.SFTPClient", folder: str) -> None:
    if not folder or folder == "/":
        return
    try:
        sftp.stat(folder)
    except FileNotFoundError:
        _make_folder(sftp, posixpath.dirname(folder))
        try:
            sftp.mkdir(folder)
        except OSError:
            sftp.stat(folder)  # another process may have made it in the meantime
