"""Use an SSH connection that the user opened with OpenSSH and that OpenSSH shares with other programs
(ControlMaster).

If a centre requires a second factor, only ssh can ask for the second factor, and users want to enter it only
once a day. This module itself never opens an SSH connection.
"""

import os
import posixpath
import stat
from pathlib import Path

from toolkit.errors import Missing
from toolkit.run.command import Command, Completed, OnBytes, OnLine
from toolkit.run.conversation import Conversation
from toolkit.run.folders import PRIVATE, folder_mode
from toolkit.run.local import LocalRunner
from toolkit.run.remote.ssh import shell_line
from toolkit.run.remote.ssh_destination import ssh_line, ssh_words

_CHECK_SECONDS = 10.0
_FILE_SECONDS = 600.0
_CHUNK = 8 << 20
"""The number of bytes of a file that one command sends. A broken connection loses at most this number of
bytes.
"""

_OF_SSH = 255
"""The exit status of ``ssh`` after a failure of ``ssh`` itself, not of the remote command."""

_READ = (
    '[ -e "$1" ] || exit 0; [ "$3" ] || exec tail -c +"$(($2 + 1))" "$1"; '
    'exec dd if="$1" bs=65536 iflag=skip_bytes,count_bytes,fullblock skip="$2" count="$3" status=none'
)
_LENGTH = 'if [ -e "$1" ]; then wc -c < "$1"; else echo 0; fi'
# This script checks the size of the received file, because a lost connection looks like the end of the input.
_WRITE = (
    'folder=$(dirname "$1"); { [ -d "$folder" ] || mkdir -p $5 "$folder"; } && cat > "$2" '
    '&& [ "$(wc -c < "$2")" -eq "$4" ] && chmod "$3" "$2" && mv -f "$2" "$1" || { rm -f "$2"; exit 1; }'
)
_SIZE = 'mkdir -p "$(dirname "$1")" && touch "$1" && wc -c < "$1"'
_APPEND = 'exec dd of="$1" bs=65536 seek="$2" oflag=seek_bytes conv=notrunc status=none'


def shared_runner(host: str, config: Path | None = None) -> "SharedRunner | None":
    """Return a runner that uses OpenSSH's shared connection to ``host``. Return ``None`` if no shared
    connection is open.

    Raises:
        BadInput: if ``host`` is not an SSH destination.
    """
    words = ssh_words(host, config)
    local = LocalRunner()
    try:
        settings = local.run(Command((words[0], "-G", *words[1:]), timeout=_CHECK_SECONDS))
        path = _control_path(settings.text) if settings.ok else ""
        runner = SharedRunner(host, config, path)
        return runner if path and runner.is_open() else None
    except Missing:  # this machine has no ssh
        return None


class SharedRunner:
    """Runs commands on ``host`` and copies files to ``host`` over an SSH connection that OpenSSH shares.

    ``control`` is the path of the connection's socket (``ControlPath`` in ssh_config(5)).
    """

    def __init__(self, host: str, config: Path | None, control: str) -> None:
        self.place = host
        self._here = LocalRunner()
        # ProxyCommand=false keeps ssh from opening a new connection if the shared connection has closed.
        options = ("-S", control, "-o", "ControlMaster=no", "-o", "ProxyCommand=false", "-o", "BatchMode=yes")
        self._ssh, *self._rest = ssh_words(host, config)
        self._options = options
        self._login = ssh_line(host, config)

    def is_open(self) -> bool:
        """Return whether ``ssh`` reports that the shared connection is open."""
        words = (self._ssh, *self._options, "-O", "check", *self._rest)
        return self._here.run(Command(words, timeout=_CHECK_SECONDS)).ok

    def run(self, command: Command) -> Completed:
        return self._check_open(command, self._here.run(self._over(command)))

    def stream(self, command: Command, on_line: OnLine) -> Completed:
        return self._check_open(command, self._here.stream(self._over(command), on_line))

    def converse(self, command: Command) -> Conversation:
        return self._here.converse(self._over(command))

    def send(self, source: Path, target: str, progress: OnBytes | None = None) -> None:
        total = source.stat().st_size
        size_text = self._sh(_SIZE, target, fault=f"cannot write {target}").text.strip()
        done = int(size_text) if size_text.isdigit() and int(size_text) <= total else 0
        if progress:
            progress(done, total)
        with source.open("rb") as reading:
            reading.seek(done)
            while chunk := reading.read(_CHUNK):
                self._sh(_APPEND, target, str(done), fault=f"cannot write {target}", stdin=chunk)
                done += len(chunk)
                if progress:
                    progress(done, total)
        size = f'dd of="$1" bs=1 count=0 seek={total} status=none && chmod "$2" "$1"'
        self._sh(size, target, f"{stat.S_IMODE(source.stat().st_mode):o}", fault=f"cannot write {target}")

    def write(self, target: str, content: bytes, mode: int = 0o644) -> None:
        folder, name = posixpath.split(target)
        beside = posixpath.join(folder, f".{name}.{os.getuid()}.{os.getpid()}.part")
        private = "-m700" if folder_mode(mode) == PRIVATE else ""
        arguments = (target, beside, f"{mode:o}", str(len(content)), private)
        self._sh(_WRITE, *arguments, fault=f"cannot write {target}", stdin=content)

    def read(self, target: str, offset: int = 0, limit: int | None = None) -> bytes:
        cut = "" if limit is None else str(limit)
        return self._sh(_READ, target, str(offset), cut, fault=f"cannot read {target}").stdout

    def size(self, target: str) -> int:
        return int(self._sh(_LENGTH, target, fault=f"cannot read {target}").text)

    def close(self) -> None:
        """Do nothing: the shared connection stays open, because it belongs to the user."""

    def _sh(self, script: str, *words: str, fault: str, stdin: bytes | None = None) -> Completed:
        done = self.run(Command(("sh", "-c", script, "sh", *words), stdin=stdin, timeout=_FILE_SECONDS))
        if not done.ok:
            why = done.errors.strip().splitlines() or [
                f"the command did not finish in {_FILE_SECONDS:g} seconds"
                if done.timed_out
                else f"the command exited with status {done.status} and printed no error"
            ]
            raise Missing(f"{self.place}: {fault}: {why[-1]}")
        return done

    def _over(self, command: Command) -> Command:
        words = (self._ssh, *self._options, *self._rest, shell_line(command))
        return Command(words, stdin=command.stdin, timeout=command.timeout)

    def _check_open(self, command: Command, result: Completed) -> Completed:
        if result.status == _OF_SSH and not self.is_open():
            raise Missing(
                f"{self.place}: the shared SSH connection is closed",
                fix=f"open the connection again: {self._login}",
            )
        return Completed(command, result.status, result.stdout, result.stderr, result.timed_out)


def _control_path(settings: str) -> str:
    """Return the control socket's path from the output of ``ssh -G``, or an empty string if the SSH
    configuration sets no ``ControlPath``.
    """
    paths = [line.partition(" ")[2] for line in settings.splitlines() if line.startswith("controlpath ")]
    return paths[0] if paths and paths[0] != "none" else ""
