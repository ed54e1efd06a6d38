"""Run commands on this machine; only this module imports ``subprocess``."""

import contextlib
import os
import select
import selectors
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from pathlib import Path
from typing import IO

from toolkit.errors import Missing
from toolkit.files import write_whole
from toolkit.run.command import Command, Completed, OnBytes, OnLine
from toolkit.run.conversation import Conversation
from toolkit.run.folders import folder_mode
from toolkit.run.guard import GUARD
from toolkit.run.lines import Lines

_CHUNK = 4 << 20
_TAIL = 1 << 16
"""How many bytes :meth:`LocalRunner.stream` keeps from the end of standard output, and how many from the end
of standard error.
"""
_GRACE = 5.0
"""The number of seconds between SIGTERM and SIGKILL for a process group."""


class LocalRunner:
    """Runs commands on this machine.

    Each command runs in a new process session, so that toolkit can kill the command with all its children.
    """

    place = "this machine"

    def run(self, command: Command) -> Completed:
        process = _start(command)
        try:
            out, err = process.communicate(command.stdin, timeout=command.timeout)
        except subprocess.TimeoutExpired:
            end_group(process)
            out, err = process.communicate()
            return Completed(command, process.returncode, out, err, timed_out=True)
        except BaseException:
            end_group(process)
            process.communicate()
            raise
        finally:
            GUARD.release(process.pid)
        return Completed(command, process.returncode, out, err)

    def stream(self, command: Command, on_line: OnLine) -> Completed:
        process = _start(command)
        collected: dict[str, bytearray] = {"out": bytearray(), "err": bytearray()}
        deadline = None if command.timeout is None else time.monotonic() + command.timeout
        try:
            timed_out = not _pump(process, command.stdin or b"", collected, on_line, deadline)
            if timed_out:
                end_group(process)
            process.wait()
        except BaseException:
            end_group(process)
            process.wait()
            raise
        finally:
            GUARD.release(process.pid)
            for pipe in (process.stdin, process.stdout, process.stderr):
                if pipe:
                    pipe.close()
        out, err = bytes(collected["out"]), bytes(collected["err"])
        return Completed(command, process.returncode, out, err, timed_out)

    def converse(self, command: Command) -> Conversation:
        return _LocalConversation(command)

    def send(self, source: Path, target: str, progress: OnBytes | None = None) -> None:
        goal = Path(target)
        goal.parent.mkdir(parents=True, exist_ok=True)
        total = source.stat().st_size
        with source.open("rb") as reading, goal.open("ab") as writing:
            if writing.tell() > total:
                writing.truncate(0)
            reading.seek(writing.tell())
            if progress:
                progress(writing.tell(), total)
            while chunk := reading.read(_CHUNK):
                writing.write(chunk)
                if progress:
                    progress(writing.tell(), total)
        shutil.copymode(source, goal)

    def write(self, target: str, content: bytes, mode: int = 0o644) -> None:
        goal = Path(target)
        absent = [folder for folder in goal.parents if not folder.exists()]
        try:
            goal.parent.mkdir(folder_mode(mode), parents=True, exist_ok=True)
            write_whole(goal, content, mode)
        except OSError:
            # Remove the folders that this call created, the deepest first. rmdir() keeps folders with files.
            for folder in absent:
                with contextlib.suppress(OSError):
                    folder.rmdir()
            raise

    def read(self, target: str, offset: int = 0, limit: int | None = None) -> bytes:
        try:
            with Path(target).open("rb") as file:
                file.seek(offset)
                return file.read(-1 if limit is None else limit)
        except FileNotFoundError:
            return b""

    def size(self, target: str) -> int:
        try:
            return Path(target).stat().st_size
        except FileNotFoundError:
            return 0

    def close(self) -> None:
        pass


class _LocalConversation:
    """A running command on this machine, with which a caller exchanges bytes. The command writes its standard
    error to a temporary file, because a full pipe would block the command.
    """

    def __init__(self, command: Command) -> None:
        self._reading = threading.Lock()
        self._closed = threading.Event()
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - close() closes the file
        try:
            self._process = _start(command, stdin=subprocess.PIPE, stderr=self._errors)
        except BaseException:
            self._errors.close()
            raise

    def read(self) -> bytes:
        # close() must not close the pipe during read(). Otherwise, a new file could get the pipe's descriptor
        # number, and read() would read from that file.
        with self._reading:
            if self._closed.is_set() or not self._process.stdout:
                return b""
            content = os.read(self._process.stdout.fileno(), 1 << 16)
            if self._closed.is_set():  # close() ran during the read and left the pipe open
                self._process.stdout.close()
            return content

    def write(self, content: bytes) -> None:
        if self._process.stdin is None:
            raise BrokenPipeError
        self._process.stdin.write(content)
        self._process.stdin.flush()

    def errors(self) -> str:
        self._errors.seek(0)
        return self._errors.read(1 << 16).decode("utf-8", "replace")

    def close(self) -> None:
        with contextlib.suppress(OSError):
            if self._process.stdin:
                self._process.stdin.close()
        try:
            self._process.wait(_GRACE)
        except subprocess.TimeoutExpired:
            end_group(self._process)
            self._process.wait()
        GUARD.release(self._process.pid)
        self._closed.set()
        # Wait for at most _GRACE seconds until a running read() returns, and then close the pipe. If a child
        # of the command holds the pipe open for longer, read() itself closes the pipe later.
        if self._process.stdout and self._reading.acquire(timeout=_GRACE):
            self._process.stdout.close()
            self._reading.release()
        self._errors.close()


def _start(
    command: Command, stdin: int | None = None, stderr: "int | IO[bytes]" = subprocess.PIPE
) -> "subprocess.Popen[bytes]":
    if stdin is None:
        stdin = subprocess.DEVNULL if command.stdin is None else subprocess.PIPE
    GUARD.prepare()
    try:
        process = subprocess.Popen(
            list(command.words),
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=stderr,
            env={**os.environ, **command.env},
            cwd=command.cwd,
            start_new_session=True,
        )
    except (FileNotFoundError, PermissionError) as error:
        # Python raises PermissionError for a missing program if the user cannot read a folder on PATH.
        program = command.words[0]
        if isinstance(error, FileNotFoundError) or ("/" not in program and shutil.which(program) is None):
            raise Missing(
                f"{program} is not installed on this machine (not found on PATH)",
                fix=f"install {program}, or put it on PATH",
            ) from error
        raise Missing(f"{program} cannot be executed: {error.strerror}") from error
    GUARD.watch(process.pid)
    return process


def end_group(process: "subprocess.Popen[bytes]") -> None:
    """Send SIGTERM to the process group of ``process``. When ``process`` has exited, or after 5 s, send
    SIGKILL to the rest of the group.
    """
    try:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(_GRACE)
    except subprocess.TimeoutExpired:
        pass
    except ProcessLookupError:
        return
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _pump(
    process: "subprocess.Popen[bytes]",
    stdin: bytes,
    tails: dict[str, bytearray],
    on_line: OnLine,
    deadline: float | None,
) -> bool:
    """Write ``stdin`` to a process, and pass the process's output lines to ``on_line``. Return True when both
    output streams have ended, and False if the deadline comes first.

    ``tails`` gets the last bytes of both streams. The function alternates between reads and writes. If
    the function first wrote the whole input, a process with much input and output could cause a deadlock.
    """
    ungiven = memoryview(stdin)
    lines = {"out": Lines(on_line), "err": Lines(on_line)}
    with selectors.DefaultSelector() as waiting:
        for name, pipe in (("out", process.stdout), ("err", process.stderr)):
            if pipe:
                waiting.register(pipe, selectors.EVENT_READ, name)
        if process.stdin:
            waiting.register(process.stdin, selectors.EVENT_WRITE, "in")
        while waiting.get_map():
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                return False
            for key, _ in waiting.select(left):
                if key.data == "in":
                    ungiven = _give(process, ungiven, waiting)
                elif chunk := os.read(key.fd, 1 << 16):
                    tails[key.data] += chunk
                    del tails[key.data][:-_TAIL]
                    lines[key.data].take(chunk)
                else:
                    waiting.unregister(key.fileobj)
    for stream in lines.values():
        stream.end()
    return True


def _give(
    process: "subprocess.Popen[bytes]", rest: memoryview, selector: selectors.BaseSelector
) -> memoryview:
    """Write as many bytes to the process's standard input as the pipe accepts without blocking. Return the
    bytes that the pipe did not accept.

    If the process has closed its standard input, toolkit drops the rest of the input without an error.
    """
    if process.stdin is None:
        return rest
    try:
        rest = rest[os.write(process.stdin.fileno(), rest[: select.PIPE_BUF]) :]
    except BrokenPipeError:
        rest = rest[:0]
    if not rest:
        selector.unregister(process.stdin)
        process.stdin.close()
    return rest
