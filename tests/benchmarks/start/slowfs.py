"""Mount a slow shared file system: python -m tests.benchmarks.start.slowfs THREADS SOURCE TRACES MOUNT...

Each MOUNT acts as a node with its own caches, and all mounts share one server. When a mount is unmounted, the
program writes the operations that reached the server to ``TRACES/N.json``.
"""

import errno
import json
import multiprocessing
import os
import sys
import time
from pathlib import Path
from typing import Any

import mfusepy

from tests.benchmarks.start.limits import METADATA, READ, Queue, Server

CACHED_SECONDS = 600
"""Seconds for which a node remembers whether a file exists: longer than any start."""


class SharedQueue:
    """The server's queue for all nodes, in memory that the nodes' processes share."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._state = multiprocessing.Array("d", Queue(self._server).state)

    def finish(self, kind: str, size: int) -> float:
        """Return the time at which the server finishes an operation, by this machine's monotonic clock."""
        with self._state.get_lock():
            queue = Queue(self._server, self._state[:])
            end = queue.finish(kind, size, time.monotonic())
            self._state[:] = queue.state
        return end


class Node(mfusepy.Operations):  # type: ignore[misc]  # mfusepy has no complete types
    """A read-only file system with the source folder, as one node sees it."""

    use_ns = True

    def __init__(self, source: Path, line: SharedQueue, trace: Path) -> None:
        self._source, self._line, self._trace = str(source), line, trace
        self._done: list[tuple[float, float, str, int]] = []

    def _served(self, kind: str, size: int, begun: float) -> None:
        """Wait until the server has finished an operation, and record when it began and ended."""
        end = self._line.finish(kind, size)
        while (left := end - time.monotonic()) > 0:
            time.sleep(left)
        self._done.append((begun, time.monotonic(), kind, size))

    def _path(self, path: str) -> str:
        return self._source + path

    def getattr(self, path: str, fh: int | None = None) -> dict[str, Any]:
        begun = time.monotonic()
        try:
            found = os.lstat(self._path(path))
        except OSError as error:
            raise mfusepy.FuseOSError(error.errno or errno.EIO) from None
        finally:
            self._served(METADATA, 0, begun)
        names = ("st_mode", "st_nlink", "st_size", "st_uid", "st_gid")
        times = {name: getattr(found, f"{name}_ns") for name in ("st_mtime", "st_ctime", "st_atime")}
        return {**{name: getattr(found, name) for name in names}, **times}

    def readdir(self, path: str, fh: int) -> list[str]:
        begun = time.monotonic()
        names = [".", "..", *os.listdir(self._path(path))]  # noqa: PTH208 - names alone
        self._served(METADATA, 0, begun)
        return names

    def readlink(self, path: str) -> str:
        begun = time.monotonic()
        target = os.readlink(self._path(path))  # noqa: PTH115 - the text of the link
        self._served(METADATA, 0, begun)
        return target

    def open(self, path: str, flags: int) -> int:
        begun = time.monotonic()
        number = os.open(self._path(path), flags)
        self._served(METADATA, 0, begun)
        return number

    def read(self, path: str, size: int, offset: int, fh: int) -> bytes:
        begun = time.monotonic()
        content = os.pread(fh, size, offset)
        self._served(READ, len(content), begun)
        return content

    def release(self, path: str, fh: int) -> int:
        os.close(fh)
        return 0

    def destroy(self, path: str) -> None:
        part = self._trace.with_suffix(".part")
        part.write_text(json.dumps(self._done))
        part.replace(self._trace)


def _mount(source: Path, mount: Path, line: SharedQueue, trace: Path) -> None:
    mfusepy.FUSE(
        Node(source, line, trace),
        str(mount),
        foreground=True,
        ro=True,
        allow_other=True,
        kernel_cache=True,
        entry_timeout=CACHED_SECONDS,
        attr_timeout=CACHED_SECONDS,
        negative_timeout=CACHED_SECONDS,
    )


def main() -> None:
    """Mount the file systems, and return after all of them are unmounted."""
    threads, (source, traces, *mounts) = int(sys.argv[1]), map(Path, sys.argv[2:])
    line = SharedQueue(Server(threads=threads))
    nodes = [
        multiprocessing.Process(
            target=_mount, args=(source.resolve(), mount, line, traces / f"{number}.json")
        )
        for number, mount in enumerate(mounts)
    ]
    for node in nodes:
        node.start()
    for node in nodes:
        node.join()


if __name__ == "__main__":
    main()
