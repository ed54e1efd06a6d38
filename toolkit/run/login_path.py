"""Find programs that are on PATH only in a login shell.

A command over SSH does not run in a login shell. If a centre adds Slurm to PATH in ``/etc/profile.d`` or in a
module, ``ssh HOST squeue`` fails, although ``squeue`` works in a login shell.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from toolkit.data import shipped_folder
from toolkit.run.command import Command, Completed, OnBytes, OnLine, Runner
from toolkit.run.conversation import Conversation

_NOT_FOUND = 127
_SECONDS = 30.0
_MARK = "toolkit-path:"
"""The mark before the value of PATH in the output of a shell. The mark is necessary, because the start-up
files of a login shell may print other lines.
"""

_TELL = f"printf '\\n{_MARK}%s\\n' \"$PATH\"\n".encode()


class LoginPathRunner:
    """Runs commands through another runner. If the host does not find a program, this class adds the login
    shell's PATH and runs the command again.
    """

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._path = ""
        self._missed: set[str] = set()

    @property
    def place(self) -> str:
        return self._runner.place

    def run(self, command: Command) -> Completed:
        return self._until_found(command, self._runner.run)

    def stream(self, command: Command, on_line: OnLine) -> Completed:
        return self._until_found(command, lambda full_command: self._runner.stream(full_command, on_line))

    def converse(self, command: Command) -> Conversation:
        return self._runner.converse(self._with_login_path(command))

    def send(self, source: Path, target: str, progress: OnBytes | None = None) -> None:
        self._runner.send(source, target, progress)

    def write(self, target: str, content: bytes, mode: int = 0o644) -> None:
        self._runner.write(target, content, mode)

    def read(self, target: str, offset: int = 0, limit: int | None = None) -> bytes:
        return self._runner.read(target, offset, limit)

    def size(self, target: str) -> int:
        return self._runner.size(target)

    def close(self) -> None:
        self._runner.close()

    def _until_found(self, command: Command, run: Callable[[Command], Completed]) -> Completed:
        done = run(self._with_login_path(command))
        if done.status == _NOT_FOUND and self._learns(command.words[0]):
            return run(self._with_login_path(command))
        return done

    def _with_login_path(self, command: Command) -> Command:
        if not self._path:
            return command
        return replace(command, env={"PATH": self._path, **command.env})

    def _learns(self, program: str) -> bool:
        """Ask a login shell on the host for its PATH, at most once for each program. If the login shell adds
        folders to PATH, store the longer PATH for later commands, and return True. Otherwise, return False.
        """
        if "/" in program or self._path or program in self._missed:
            return False
        self._missed.add(program)
        script = _TELL + (shipped_folder("containers") / "login-path.sh").read_bytes() + _TELL
        asking = Command(("sh", "-s"), script, {"TOOLKIT_PROGRAM": program}, timeout=_SECONDS)
        lines = self._runner.run(asking).text.splitlines()
        paths = [line.removeprefix(_MARK).split(":") for line in lines if line.startswith(_MARK)]
        if len(paths) != 2 or set(paths[1]) <= set(paths[0]):
            return False
        # login-path.sh puts the login shell's folders at the end of PATH, so programs in the other folders of
        # PATH keep their precedence.
        self._path = ":".join(dict.fromkeys(paths[1]))
        return True
