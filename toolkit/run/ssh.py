"""Run commands on another machine over SSH: fabric makes the connection, paramiko's channel runs them.

fabric accepts unknown hosts and reads the person's own fabric files by default, and its ``run`` costs
milliseconds per character; hence the strict policy, the private configuration and the loop of our own.
"""

import contextlib
import getpass
import os
import posixpath
import shlex
import stat
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolkit.errors import BadInput, Missing, ToolkitError
from toolkit.run.command import Command, Completed, OnBytes, OnLine

if TYPE_CHECKING:
    import paramiko

_CHUNK = 1 << 16
_CONNECT_SECONDS = 15
_POLL_SECONDS = 0.02


class SshRunner:
    """Commands on ``host``, an SSH destination or a ``Host`` alias of the SSH configuration.

    ``config`` replaces the person's own ``~/.ssh/config``, as ``ssh -F`` does.
    """

    def __init__(self, host: str, config: Path | None = None) -> None:
        if not host or host.startswith("-") or any(c.isspace() for c in host):
            raise BadInput(f"--host {host!r}: not an SSH destination; give HOST, USER@HOST or USER@HOST:PORT")
        self._host = host
        self._connection = _connect(host, config)

    @property
    def place(self) -> str:
        return self._host

    def run(self, command: Command) -> Completed:
        return self.stream(command, lambda _: None)

    def stream(self, command: Command, on_line: OnLine) -> Completed:
        channel = self._session()
        try:
            channel.exec_command(shell_line(command))
            if command.stdin:
                channel.sendall(command.stdin)
            channel.shutdown_write()
            return _collect(channel, command, on_line)
        finally:
            channel.close()

    def upload(self, source: Path, target: str, progress: OnBytes | None = None) -> None:
        sftp = self._connection.sftp()
        beside = _beside(target)
        _make_folder(sftp, posixpath.dirname(target))
        try:
            sftp.put(str(source), beside, callback=progress, confirm=True)
            sftp.chmod(beside, stat.S_IMODE(source.stat().st_mode))
            sftp.posix_rename(beside, target)
        except BaseException as error:
            with contextlib.suppress(OSError):
                sftp.remove(beside)
            if isinstance(error, OSError):
                raise Missing(f"{self.place}: cannot write {target}: {error}") from error
            raise

    def write(self, target: str, content: bytes, mode: int = 0o644) -> None:
        sftp = self._connection.sftp()
        beside = _beside(target)
        try:
            _make_folder(sftp, posixpath.dirname(target))
            with sftp.open(beside, "wb") as file:
                file.write(content)
            sftp.chmod(beside, mode)
            sftp.posix_rename(beside, target)
        except OSError as error:
            with contextlib.suppress(OSError):
                sftp.remove(beside)
            raise Missing(f"{self.place}: cannot write {target}: {error}") from error

    def read(self, target: str, offset: int = 0) -> bytes:
        sftp = self._connection.sftp()
        try:
            with sftp.open(target, "rb") as file:
                file.seek(offset)
                content: bytes = file.read()
                return content
        except FileNotFoundError:
            return b""

    def close(self) -> None:
        self._connection.close()

    def _session(self) -> "paramiko.Channel":
        try:
            return self._connection.create_session()
        except ToolkitError:
            raise
        except Exception as error:
            raise Missing(f"{self.place}: the SSH connection was lost: {error}") from error


def shell_line(command: Command) -> str:
    """Return the line that the far login shell is given; SSH carries a line, never words."""
    words = shlex.join(command.words)
    if command.env:
        words = shlex.join(["env", *(f"{k}={v}" for k, v in command.env.items())]) + " " + words
    if command.cwd:
        words = f"cd {shlex.quote(command.cwd)} && {words}"
    return words


def _connect(host: str, config: Path | None) -> Any:  # noqa: ANN401 - fabric ships no types; stays in this module
    import fabric
    import paramiko
    from fabric.config import Config

    class PrivateConfig(Config):  # type: ignore[misc]  # fabric ships no types
        """Reads none of the person's fabric and invoke files, which would change our commands."""

        prefix = "toolkit-internal"

    try:
        settings = PrivateConfig(runtime_ssh_path=str(config) if config else None)
        connection = fabric.Connection(host, config=settings, connect_timeout=_CONNECT_SECONDS)
    except (OSError, ValueError, paramiko.SSHException) as error:
        raise BadInput(f"--host {host}: {error}") from error
    wanted = connection.ssh_config
    known = [Path(p).expanduser() for p in wanted.get("userknownhostsfile", "~/.ssh/known_hosts").split()]
    known.append(Path("/etc/ssh/ssh_known_hosts"))
    for file in known:
        _load_known(connection.client, file)
    connection.client.set_missing_host_key_policy(paramiko.RejectPolicy())
    _open(connection, host, known[0], paramiko)
    return connection


def _open(connection: Any, host: str, known: Path, paramiko: Any) -> None:  # noqa: ANN401 - see _connect
    where = f"{connection.host} port {connection.port}"
    name = connection.host if connection.port == 22 else f"[{connection.host}]:{connection.port}"
    try:
        connection.open()
    except paramiko.BadHostKeyException as error:
        raise Missing(
            f"{where}: the host key is not the one in {known}; this may be an attack",
            fix=f"if the key was changed on purpose: ssh-keygen -f {shlex.quote(str(known))} -R {shlex.quote(name)}",
        ) from error
    except paramiko.AuthenticationException as error:
        raise Missing(
            f"{where}: {connection.user} was not let in: {error}",
            fix=f"check that this works: ssh {shlex.quote(host)} true",
        ) from error
    except paramiko.SSHException as error:
        if "not found in known_hosts" in str(error):
            raise Missing(
                f"{where}: unknown host: its key is not in {known}",
                fix=f"compare the key with what the centre publishes, then: ssh-keyscan -p {connection.port} "
                f"{shlex.quote(connection.host)} >> {shlex.quote(str(known))}",
            ) from error
        raise Missing(f"{where}: SSH failed: {error}") from error
    except (OSError, EOFError) as error:
        raise Missing(
            f"{where}: cannot be reached over SSH: {error}", fix="is the host up and the name right?"
        ) from error


def _load_known(client: Any, file: Path) -> None:  # noqa: ANN401 - see _connect
    """Load a known_hosts file without its marker lines, on which paramiko 5.1 raises.

    A ``@revoked`` key is thereby unknown and refused, and so is one that only a
    ``@cert-authority`` vouches for: paramiko does not verify host certificates.
    """
    import tempfile

    try:
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines(keepends=True)
    except OSError:
        return
    with tempfile.NamedTemporaryFile("w", suffix=".known_hosts") as plain:
        plain.writelines(line for line in lines if not line.lstrip().startswith("@"))
        plain.flush()
        client.load_host_keys(plain.name)
    # load_host_keys remembers the name as the place to save to; nothing is ever saved.


def _collect(channel: "paramiko.Channel", command: Command, on_line: OnLine) -> Completed:
    deadline = None if command.timeout is None else time.monotonic() + command.timeout
    out, err = bytearray(), bytearray()
    rest = {id(out): b"", id(err): b""}

    def take(chunk: bytes, into: bytearray) -> None:
        into += chunk
        *lines, rest[id(into)] = (rest[id(into)] + chunk).split(b"\n")
        for line in lines:
            on_line(line.decode("utf-8", "replace").rstrip("\r"))

    timed_out = False
    while True:
        idle = True
        if channel.recv_ready():
            take(channel.recv(_CHUNK), out)
            idle = False
        if channel.recv_stderr_ready():
            take(channel.recv_stderr(_CHUNK), err)
            idle = False
        if (
            idle
            and channel.exit_status_ready()
            and not channel.recv_ready()
            and not channel.recv_stderr_ready()
        ):
            break
        if deadline is not None and time.monotonic() > deadline:
            timed_out = True
            break
        if idle:
            if channel.closed or (channel.transport is not None and not channel.transport.is_active()):
                raise Missing(
                    "the SSH connection was lost while a command ran", fix="run the same command again"
                )
            time.sleep(_POLL_SECONDS)
    for tail in rest.values():
        if tail:
            on_line(tail.decode("utf-8", "replace"))
    status = -1 if timed_out else channel.recv_exit_status()
    return Completed(command, status, bytes(out), bytes(err), timed_out)


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
        with contextlib.suppress(OSError):  # another process may have made it in the meantime
            sftp.mkdir(folder)
