"""Where each record of TFRecord files lies: read once from the records' headers, and kept beside the files.

A record is its length as 8 bytes, a checksum of that, the bytes, and a checksum of those (4 bytes each).
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
"""Bytes before a record and behind it."""

_DAMAGED = (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile)
"""What NumPy raises of a file that is absent or not what was kept."""

_AT_ONCE = 16
"""Files that are read at once: on a shared file system most of the time is waiting."""


@dataclass(frozen=True, slots=True, eq=False)
class RecordIndex:
    """``places`` has a row for each record: the file's place in ``paths``, the first byte, and how many."""

    paths: tuple[Path, ...]
    places: "numpy.ndarray"

    def __len__(self) -> int:
        return len(self.places)

    @staticmethod
    def begin(path: Path) -> int:
        """Return how long the first record is.

        Raises:
            Trouble: if the file does not begin with one.
        """
        try:
            with path.open("rb", buffering=0) as file:
                return _length(file.fileno(), 0, os.fstat(file.fileno()).st_size, path)
        except OSError as error:
            raise Trouble(f"{path}: cannot be read: {error.strerror}") from None


def indexed(paths: Sequence[Path]) -> RecordIndex:
    """Return the index of all records of some files, in their order; it is kept, if that can be written.

    Raises:
        Trouble: naming the file that is no file of records, or is cut short.
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
    """Return how long the records of a file are, one after the other to its end."""
    try:
        with path.open("rb", buffering=0) as file:
            size, at, found = os.fstat(file.fileno()).st_size, 0, list[int]()
            while at < size or not found:
                found.append(_length(file.fileno(), at, size, path))
                at += HEAD + found[-1] + _TAIL
            return found
    except OSError as error:
        raise Trouble(f"{path}: cannot be read: {error.strerror}") from None


def _length(file: int, at: int, size: int, path: Path) -> int:
    head = os.pread(file, HEAD, at)
    if len(head) < HEAD:
        raise Trouble(f"{path}: is cut short at byte {at}, where a record should begin")
    (length,) = struct.unpack_from("<Q", head)
    if at + HEAD + length + _TAIL > size:
        raise Trouble(
            f"{path}: is cut short, or no file of TFRecords: a record at byte {at} ends behind the file"
        )
    return int(length)


def _digest(paths: Sequence[Path]) -> str:
    """Name an index by the names, sizes and ages of its files, so that it is of no others."""
    digest = hashlib.sha256()
    for path in paths:
        try:
            status = path.stat()
        except OSError as error:
            raise Trouble(f"{path}: cannot be read: {error.strerror}") from None
        digest.update(f"{path.name} {status.st_size} {status.st_mtime_ns}\n".encode())
    return digest.hexdigest()[:16]


def _keep(path: Path, places: "numpy.ndarray") -> None:
    """Write beside and rename; where data cannot be written to, the headers are read each time."""
    import numpy as np

    beside = path.with_name(f"{path.stem}.{os.uname().nodename}.{os.getpid()}.part.npz")
    with contextlib.suppress(OSError):
        try:
            np.savez(beside, places=places)
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)
