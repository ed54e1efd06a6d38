"""Find the offset of each record in TFRecord files, and cache the offsets in a file in the data folder.

A record has four parts: the length of the data (8 bytes), a checksum of the length (4 bytes), the data, and a
checksum of the data (4 bytes).
"""

import contextlib
import hashlib
import os
import struct
import zipfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.trainers.trouble import Trouble

if TYPE_CHECKING:
    import numpy

HEAD, _TAIL = 12, 4
"""The number of bytes in a record before the data, and the number of bytes after the data."""

_DAMAGED = (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile)
"""The exceptions that reading the cached index may raise if the cached index is missing or damaged."""

_AT_ONCE = 16
"""The number of files that toolkit reads at the same time. Reads from a shared file system spend most of
their time waiting, so parallel reads save time.
"""


@dataclass(frozen=True, slots=True, eq=False)
class RecordIndex:
    """The offsets of all records in a set of TFRecord files. Each row of ``places`` describes one record: the
    index of its file in ``paths``, and the offset and the length of its data in bytes.
    """

    paths: tuple[Path, ...]
    places: "numpy.ndarray"

    def __len__(self) -> int:
        return len(self.places)

    @staticmethod
    def begin(path: Path) -> int:
        """Return the number of data bytes in the first record of a file.

        Raises:
            Trouble: if the file does not begin with a record.
        """
        try:
            with path.open("rb", buffering=0) as file:
                return _length(file.fileno(), 0, os.fstat(file.fileno()).st_size, path)
        except OSError as error:
            raise Trouble(f"{path}: cannot be read: {error.strerror}") from None


def index_records(paths: Sequence[Path]) -> RecordIndex:
    """Return the index of all records of the files ``paths``, in the order of ``paths``. If the folder of the
    files is writable, cache the index in this folder.

    Raises:
        Trouble: if a file is unreadable, is truncated or is not a TFRecord file; the message names the file.
    """
    import numpy as np

    kept = paths[0].with_name(f".records-{_digest(paths)}.npz")
    with contextlib.suppress(*_DAMAGED), kept.open("rb") as raw, np.load(raw) as file:
        return RecordIndex(tuple(paths), file["places"])
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        lengths = list(pool.map(_lengths, paths))
    tables = []
    for number, each in enumerate(lengths):
        sizes = np.array(each, np.int64)
        first = np.cumsum(sizes + HEAD + _TAIL) - sizes - _TAIL
        tables.append(np.stack([np.full_like(sizes, number), first, sizes], axis=1))
    places = np.concatenate(tables)
    _keep(kept, places)
    return RecordIndex(tuple(paths), places)


def _lengths(path: Path) -> list[int]:
    """Return the number of data bytes in each record of a file, in order."""
    try:
        with path.open("rb", buffering=0) as file:
            size, at, found = os.fstat(file.fileno()).st_size, 0, list[int]()
            while at < size or not found:
                found.append(_length(file.fileno(), at, size, path))
                at += HEAD + found[-1] + _TAIL
            return found
    except OSError as error:
        raise Trouble(f"{path}: cannot be read: {error.strerror}") from None


def _length(file: int, offset: int, size: int, path: Path) -> int:
    head = os.pread(file, HEAD, offset)
    if len(head) < HEAD:
        raise Trouble(f"{path}: the file is cut off in the header of the record at byte {offset}")
    (length,) = struct.unpack_from("<Q", head)
    if offset + HEAD + length + _TAIL > size:
        raise Trouble(
            f"{path}: the file is cut off, or is not a TFRecord file: the record at byte {offset} ends after "
            "the end of the file"
        )
    return int(length)


def _digest(paths: Sequence[Path]) -> str:
    """Return a digest of the files' names, sizes and modification times. The file name of the cached index
    contains this digest.
    """
    digest = hashlib.sha256()
    for path in paths:
        try:
            status = path.stat()
        except OSError as error:
            raise Trouble(f"{path}: cannot be read: {error.strerror}") from None
        digest.update(f"{path.name} {status.st_size} {status.st_mtime_ns}\n".encode())
    return digest.hexdigest()[:16]


def _keep(path: Path, places: "numpy.ndarray") -> None:
    """Write the cached index under a temporary name, and rename it, so that no rank reads an unfinished file.
    If the data folder is read-only, write no cached index.
    """
    import numpy as np

    beside = path.with_name(f"{path.stem}.{os.uname().nodename}.{os.getpid()}.part.npz")
    with contextlib.suppress(OSError):
        try:
            np.savez(beside, places=places)
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)
