"""Run toolkit in a child process without network access, with a time limit and a memory limit."""

import gc
import importlib
import os
import pkgutil
import resource
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any, NamedTuple

SECONDS = 5.0
_BYTES = 3 << 30
_ALLOWED = ("gpg", "gpgconf")
"""Programs that a call may start, because they only read the user's file; other programs contact services or
the machine.
"""
_SKIPPED = ("toolkit.trainers", "toolkit.__main__")
_SIGNALLED = 128
_ASKED = 77
"""Exit status of a child process that tried to contact a service or to start a forbidden program."""


class Outcome(NamedTuple):
    """The result of a call; ``asked`` names the service or the program that the call tried to use."""

    code: int
    errors: str
    asked: str
    seconds: float


def load() -> None:
    """Import all modules that commands import, so that a forked child starts fast."""
    import toolkit

    for found in pkgutil.walk_packages(toolkit.__path__, "toolkit."):
        if not found.name.startswith(_SKIPPED):
            importlib.import_module(found.name)
    for name in ("docker", "fabric", "paramiko", "yaml", "zstandard", "rich.live"):
        importlib.import_module(name)
    gc.freeze()


def call(words: list[str], folder: Path, seconds: float = SECONDS) -> Outcome:
    errors, asked = folder / ".errors", folder / ".asked"
    began = time.monotonic()
    child = os.fork()
    if child == 0:
        _run(words, folder, errors, asked)
    code = _waited(child, began + seconds)
    took = time.monotonic() - began
    return Outcome(code, errors.read_text("utf-8", "replace"), asked.read_text("utf-8", "replace"), took)


def _waited(child: int, deadline: float) -> int:
    pause = 0.001
    while time.monotonic() < deadline:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else _SIGNALLED - code
        time.sleep(pause)
        pause = min(pause * 2, 0.05)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return _SIGNALLED + signal.SIGKILL


def _run(words: list[str], folder: Path, errors: Path, asked: Path) -> None:
    """Run the command in the forked child process; this function does not return."""
    code = 70
    try:
        os.setsid()
        os.chdir(folder)
        tempfile.tempdir = None  # read TMPDIR again; the parent process cached its value
        _redirect(errors)
        number = os.open(asked, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        sys.addaudithook(lambda event, values: _forbid(number, event, values))
        resource.setrlimit(resource.RLIMIT_AS, (_BYTES, _BYTES))
        from toolkit.cli.main import main

        main(words)
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 1
    except BaseException:  # noqa: BLE001 - the test is about every kind of exception
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (OSError, ValueError):
                continue
        os._exit(code)


def _redirect(errors: Path) -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    written = os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    for goal, number in ((0, nothing), (1, nothing), (2, written)):
        os.dup2(number, goal)
    sys.stdin = os.fdopen(0, "r", closefd=False)
    sys.stdout = os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", encoding="utf-8", errors="surrogateescape", closefd=False)


def _forbid(number: int, event: str, values: tuple[Any, ...]) -> None:
    """Audit hook: record a connection, a name look-up or a forbidden program, and exit the child process."""
    if event in {"socket.connect", "socket.getaddrinfo", "socket.sendto"}:
        os.write(number, f"{event} {values[1:] if event != 'socket.getaddrinfo' else values}\n".encode())
        os._exit(_ASKED)
    if event == "subprocess.Popen" and Path(str(values[0])).name not in _ALLOWED:
        os.write(number, f"{event} {values[0]}\n".encode())
        os._exit(_ASKED)
