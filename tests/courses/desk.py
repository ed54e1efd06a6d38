"""Simulate a reader: an empty folder, a shell that persists between commands, and the name of a cluster."""

import os
import re
import selectors
import shlex
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

ROOT = Path(__file__).parents[2]

CLASSROOM = "classroom"
"""The virtual cluster's name on the pages."""

_NAME = re.compile(rf"(?<![\w/.-]){CLASSROOM}(?![\w/.-])")
_STOP_SECONDS = 60.0
_WIDTH = "100"


class NoEnd(RuntimeError):
    """A command exceeded its time limit, or exited the shell."""


class Desk:
    """A reader's folder with separate settings and job records; the cluster's keys and the images are shared.

    ``cluster`` is the real name of the cluster. It is as long as the name on the pages, so that tables keep
    their widths. ``variables`` are further environment variables of the reader.
    """

    def __init__(
        self, folder: Path, cluster: str, shared_state: Path, variables: Mapping[str, str] | None = None
    ) -> None:
        assert len(cluster) == len(CLASSROOM)
        self.folder = folder / "lesson"
        self._cluster = cluster
        self._config, self._state = folder / "config", folder / "state"
        (self._state / "toolkit").mkdir(parents=True)
        (shared_state / "toolkit" / "clusters").mkdir(parents=True, exist_ok=True)
        (self._state / "toolkit" / "clusters").symlink_to(shared_state / "toolkit" / "clusters")
        self.folder.mkdir()
        (self.folder / "images").symlink_to(ROOT / "build" / "images")
        self._shared_state, self._variables = shared_state, dict(variables or {})

    def typed(self, command: str) -> str:
        """Return a page's command with the real name of the cluster."""
        return _NAME.sub(self._cluster, command)

    def shown(self, line: str) -> str:
        """Return a printed line with the names of home folder and cluster that a reader would have."""
        places = {
            f"{self.folder}/": "",
            str(self.folder): ".",
            str(self._config): "~/.config",
            str(self._state): "~/.local/state",
            str(self._shared_state): "~/.local/state",
            f"{ROOT}/build/images/": "images/",
            str(_cache()): "~/.cache/toolkit",
            f"{Path.home()}/": "~/",
            self._cluster: CLASSROOM,
        }
        for place, name in places.items():
            line = line.replace(place, name)
        return line

    def environment(self) -> dict[str, str]:
        """Return the variables of the reader's shell."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM", "TOOLKIT_", "HOROVOD"))}
        return kept | {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "XDG_CONFIG_HOME": str(self._config),
            "XDG_STATE_HOME": str(self._state),
            "TOOLKIT_CACHE_DIR": str(_cache()),
            "COLUMNS": _WIDTH,
            "LC_ALL": "C.UTF-8",
            "NO_COLOR": "1",
            "TERM": "dumb",
            "PYTHONUNBUFFERED": "1",
            **self._variables,
        }


class Shell:
    """A bash process that runs commands one after the other in a folder; a context manager."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            ["bash", "--norc", "--noprofile"],
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def run(self, command: str, timeout: float) -> tuple[int, list[str]]:
        """Run a command, and return its exit status and the lines of its output on both streams.

        Raises:
            NoEnd: if the command exceeds ``timeout`` seconds. The error has the output so far, and the shell
                is no longer usable.
        """
        assert self._process.stdin
        end = f"end-{uuid.uuid4().hex}"
        line = f"eval {shlex.quote(command)} </dev/null; printf '\\n{end} %d\\n' $?\n"
        self._process.stdin.write(line.encode())
        self._process.stdin.flush()
        text = ""
        for part in self._read(time.monotonic() + timeout):
            text += part
            if found := re.search(rf"\n?{end} (\d+)\n", text):
                return int(found[1]), text[: found.start()].splitlines()
        raise NoEnd(f"{command}: no end within {timeout:g} s; so far:\n{text}")

    def _read(self, until: float) -> Iterator[str]:
        assert self._process.stdout
        with selectors.DefaultSelector() as ready:
            ready.register(self._process.stdout, selectors.EVENT_READ)
            while (left := until - time.monotonic()) > 0 and ready.select(left):
                part = os.read(self._process.stdout.fileno(), 1 << 16)
                if not part:
                    return
                yield part.decode("utf-8", "replace")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Interrupt running commands before killing them, so that they can clean up containers and jobs.
        for sign in (signal.SIGINT, signal.SIGKILL):
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, sign)
            if self._process.stdin:
                with suppress(BrokenPipeError):
                    self._process.stdin.close()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_STOP_SECONDS)
                break
        if self._process.stdout:
            self._process.stdout.close()


@contextmanager
def variables(**values: str) -> Iterator[None]:
    """Set environment variables of this process for the ``with`` block."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _cache() -> Path:
    from toolkit.data import cache_dir

    return cache_dir()
