"""Download a file from one address, and resume an interrupted download in this run or in the next run.

toolkit writes the partial download to a file in the cache, and locks this file during the download. The name
of the file is a hash of the address.
"""

import contextlib
import hashlib
import os
import time
from collections.abc import Iterator
from http import HTTPStatus
from io import FileIO
from pathlib import Path

from toolkit.errors import CheckFailed, Missing
from toolkit.model.progress import Tell
from toolkit.run.filelock import wait_for_lock
from toolkit.run.web import http
from toolkit.run.web.http import pause_before, without_login
from toolkit.units import format_size

_CHUNK = 1 << 20
_PATIENCE = 900.0
"""The time limit of a transfer is this number of seconds plus the file's size divided by ``_SLOWEST``."""
_SLOWEST = 50_000
"""The slowest speed, in bytes per second, that toolkit accepts for a large file. If a transfer exceeds its
time limit, toolkit tries the next source.
"""
_WAITS = 4
"""Maximum number of consecutive waits for a busy server."""


class Full(CheckFailed):
    """The disk is full or not writable. After this error, toolkit does not try other sources, because each
    download would fail for the same reason.
    """


@contextlib.contextmanager
def download(url: str, store: Path, tell: Tell, *, size: int, sha256: str = "") -> Iterator[FileIO]:
    """Download a file to the folder ``store``, and yield the file open for reading.

    Delete the file at the end of the caller's ``with`` block. If an error other than ``CheckFailed`` or
    ``Missing`` interrupts the block, keep the file for the next run.

    Without ``sha256``, the file may have at most ``size`` bytes. With ``sha256``, the file must have exactly
    ``size`` bytes and this SHA-256.

    Raises:
        CheckFailed: if the size or the SHA-256 is wrong.
        Full: if the disk is full or not writable.
        Missing: if the server is unreachable, or a retry receives no new data.
    """
    with _part(url, store, tell) as part:
        if sha256:
            _fill_right(url, part, size, sha256, tell)
        else:
            _fill(url, part, size, tell)
        part.seek(0)
        try:
            yield part
        except (CheckFailed, Missing):
            part.truncate(0)  # the caller rejects the content of the complete file: start again
            raise
        Path(str(part.name)).unlink(missing_ok=True)


def _fill_right(url: str, part: FileIO, size: int, sha256: str, tell: Tell) -> None:
    """Download the missing bytes of a file, and verify its SHA-256."""
    digest = _digest(part)
    while digest != sha256:
        if os.fstat(part.fileno()).st_size >= size:
            part.truncate(0)
        resumed = _fill(url, part, size, tell)
        if (done := os.fstat(part.fileno()).st_size) < size:
            raise Missing(f"{without_login(url)}: the download ended after {done} of {size} bytes")
        digest = _digest(part)
        if digest != sha256:
            part.truncate(0)
            if not resumed:  # a resumed file may begin with bytes of an older version
                raise CheckFailed(
                    f"{without_login(url)} has a wrong checksum: SHA-256 {digest} instead of {sha256}",
                    fix="run the same command again; if the checksum is wrong again, the file at this source "
                    "was changed: do not use this source",
                )


def _fill(url: str, part: FileIO, size_limit: int, tell: Tell) -> bool:
    """Download the missing bytes of a file of at most ``size_limit`` bytes. Return whether a partial download
    existed before the call.

    After an interruption, the function resumes the download at once. If the server is busy, the function
    first waits.
    """
    resumed = os.fstat(part.fileno()).st_size > 0
    reached = waited = 0
    while True:
        begun = part.seek(0, os.SEEK_END)
        try:
            _take(url, part, begun, size_limit, tell)
        except http.RefusedRequest as error:
            if not begun or error.status != HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
                raise
            # The server has no bytes after this offset. The partial download is complete, or is from another
            # version of the file, so download the whole file again.
            part.truncate(0)
        except http.Busy as error:
            waited += 1
            if waited > _WAITS:
                raise
            time.sleep(pause_before(waited, error.retry_after))
        except http.Slow:
            raise  # Do not retry: another source may be faster, and the next run can resume this download.
        except Missing:
            # Stop retrying if the last attempt received no new data.
            if (now := part.seek(0, os.SEEK_END)) <= max(begun, reached):
                raise
            reached, waited = now, 0
        else:
            return resumed


def _take(url: str, part: FileIO, offset: int, size_limit: int, tell: Tell) -> None:
    name = url.rpartition("/")[2]
    with http.open_address(url, start=offset, seconds=_PATIENCE + size_limit / _SLOWEST) as body:
        done = body.start
        with _on_disk(part):
            part.truncate(part.seek(done))
        while chunk := body.read(_CHUNK):
            done += len(chunk)
            if done > size_limit:
                part.truncate(0)
                raise CheckFailed(f"{without_login(url)} is longer than the expected {size_limit} bytes")
            _write(part, chunk)
            tell.detail(f"{name} {format_size(done)}")


@contextlib.contextmanager
def _part(url: str, store: Path, tell: Tell) -> Iterator[FileIO]:
    """Open and lock the partial download of an address."""
    path = store / f"{hashlib.sha256(url.encode()).hexdigest()[:16]}.part"
    while True:
        with _on_disk(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
            # The file is unbuffered, because Python cannot flush a buffer to a full disk.
            part = FileIO(path, "r+")
        with part:
            wait_for_lock(part, tell, f"Waiting for another process that fetches {without_login(url)}")
            # If another process has completed and deleted the file meanwhile, start with a new file.
            if path.exists() and os.path.samestat(path.stat(), os.fstat(part.fileno())):
                try:
                    yield part
                finally:
                    if not part.seek(0, os.SEEK_END):
                        path.unlink(missing_ok=True)
                return


def _write(part: FileIO, chunk: bytes) -> None:
    with _on_disk(part):
        while chunk:
            chunk = chunk[part.write(chunk) :]


@contextlib.contextmanager
def _on_disk(path: Path | FileIO) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise Full(
            f"{path.name if isinstance(path, FileIO) else path}: "
            f"cannot be written: {error.strerror or error}",
            fix="delete some files, or set TOOLKIT_CACHE_DIR to a folder on a larger disk",
        ) from error


def _digest(part: FileIO) -> str:
    part.seek(0)
    return hashlib.file_digest(part, "sha256").hexdigest()
