"""Run toolkit in a process that a server forks, because starting Python takes 30 times as long.

The server imports toolkit's modules before it forks. Therefore variables such as PYTHONPATH have
no effect, and a test of such a variable must start Python itself.
"""

import atexit
import gc
import json
import os
import pkgutil
import runpy
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
_LONGEST = 1 << 17


@dataclass(frozen=True, slots=True)
class Forked:
    _status: socket.socket

    def wait(self, timeout: float = 60) -> int:
        """Wait until the process exits, and return its exit status, negative for a signal."""
        self._status.settimeout(timeout)
        with self._status:
            return int(self._status.recv(16))


def start(
    words: Sequence[object],
    streams: Sequence[int],
    *,
    env: Mapping[str, str] | None = None,
    code: str = "",
    closed: Sequence[int] = (),
) -> Forked:
    """Start ``toolkit`` with the arguments ``words``, or run the Python text ``code`` instead.

    ``streams`` are the file descriptors of standard input, output and error. ``env`` is the whole
    environment, by default the environment of the test. ``closed`` are standard streams that the process
    closes at its start.
    """
    call = {
        "words": [*map(str, words)],
        "env": dict(os.environ if env is None else env),
        "cwd": str(Path.cwd()),
        "code": code,
        "closed": [*closed],
    }
    ours, theirs = socket.socketpair()
    with theirs:
        socket.send_fds(_server(), [json.dumps(call).encode()], [*streams, theirs.fileno()])
    return Forked(ours)


def run(words: Sequence[object], **more: Any) -> "subprocess.CompletedProcess[bytes]":
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, Path(os.devnull).open() as none:
        status = start(words, [none.fileno(), out.fileno(), err.fileno()], **more).wait()
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess([*words], status, out.read(), err.read())


@cache
def _server() -> socket.socket:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        server = subprocess.Popen(
            [sys.executable, "-m", "tests.forked", str(theirs.fileno())],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=(theirs.fileno(),),
        )

    def end() -> None:
        ours.close()
        server.wait(60)

    atexit.register(end)
    return ours


def _import() -> None:
    """Import all modules now, because commands import some modules only when a function runs."""
    package = import_module("toolkit")
    for found in pkgutil.walk_packages(package.__path__, "toolkit."):
        if not found.name.startswith(("toolkit.trainers", "toolkit.__main__")):
            import_module(found.name)


def _serve(calls: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """Fork a process for each call. Only the forked process returns, with the call and its streams."""
    while True:
        text, fds, _, _ = socket.recv_fds(calls, _LONGEST, 4)
        if not text:
            break
        if not os.fork():
            return json.loads(text), _kept(fds)
        for fd in fds:
            os.close(fd)
        with suppress(ChildProcessError):
            os.waitpid(-1, os.WNOHANG)
    with suppress(ChildProcessError):
        while True:
            os.waitpid(-1, 0)
    sys.exit()


def _kept(fds: list[int]) -> list[int]:
    """Fork again; the parent sends the child's exit status to the caller, and only the child returns."""
    *streams, status = fds
    if pid := os.fork():
        for fd in streams:
            os.close(fd)
        os.write(status, str(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])).encode())
        os._exit(0)
    os.close(status)
    return streams


def _become(call: dict[str, Any], streams: list[int]) -> None:
    os.setsid()
    os.chdir(call["cwd"])
    os.environ.clear()
    os.environ.update(call["env"])
    sys.argv = ["-c" if call["code"] else "toolkit", *call["words"]]
    for number, fd in enumerate(streams):
        os.dup2(fd, number)
        os.close(fd)
    for number in call["closed"]:
        os.close(number)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        first = getattr(sys, f"__{name}__")
        open_one = None if number in call["closed"] else _stream(number, first.encoding, first.errors)
        setattr(sys, name, open_one)


def _stream(number: int, encoding: str, errors: str) -> Any:
    stream = open(number, "w" if number else "r", encoding=encoding, errors=errors, closefd=False)  # noqa: SIM115
    if number == 2:
        stream.reconfigure(line_buffering=True)
    return stream


if __name__ == "__main__":
    _import()
    gc.freeze()  # forked processes share the imported modules, and must not collect them
    with socket.socket(fileno=int(sys.argv[1])) as socket_of_calls:
        received, three = _serve(socket_of_calls)
    _become(received, three)
    if received["code"]:
        exec(compile(received["code"], "<string>", "exec"), {"__name__": "__main__"})  # noqa: S102
    else:
        runpy.run_module("toolkit", run_name="__main__", alter_sys=True)
