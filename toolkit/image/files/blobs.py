"""Read the files of an OCI layout or of an image archive by name, without unpacking the archive."""

import os
import stat
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol, TypeVar

import msgspec

from toolkit.decoding import DECODE_ERRORS
from toolkit.errors import CheckFailed, Damaged
from toolkit.image.files.bounded import Budget
from toolkit.image.files.inflate import inflate
from toolkit.image.files.layers import LayeredTree
from toolkit.image.files.source import ByteSource, FileSource, SourceRange
from toolkit.image.files.tree import resolve

_MOST = 4 << 20
"""Maximum size of a manifest in bytes; registries have the same limit (opencontainers/distribution-spec)."""

_T = TypeVar("_T")


class Blobs(Protocol):
    """The files in which an image is stored.

    ``name`` is the image's name in error messages. ``packed`` is true if the files are in an archive that is
    compressed as a whole. In this case, the checksum in the compressed file covers all files of the archive.
    """

    name: str
    packed: bool

    def part(self, path: str) -> SourceRange | None:
        """Return the bytes of the file at ``path``, or None if the file does not exist."""


class FolderBlobs:
    """The files of an OCI layout in a folder. ``stack`` is an exit stack that closes the files."""

    packed = False

    def __init__(self, root: Path, name: str, budget: Budget, stack: ExitStack) -> None:
        self._root, self.name, self._budget, self._opened = root, name, budget, stack
        self._parts: dict[str, SourceRange] = {}

    def part(self, path: str) -> SourceRange | None:
        if path not in self._parts:
            try:
                # Without O_NONBLOCK, opening a named pipe blocks until another process writes to it.
                number = os.open(self._root / path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            except (FileNotFoundError, NotADirectoryError):
                return None
            file = self._opened.enter_context(os.fdopen(number, "rb"))
            status = os.fstat(number)
            if not stat.S_ISREG(status.st_mode):
                return None
            self._budget.add_stored(status.st_size)
            self._parts[path] = SourceRange(FileSource(file), 0, status.st_size)
        return self._parts[path]


class ArchiveBlobs:
    """The files in a tar, which may be compressed as a whole; links in the tar cannot lead out of the tar."""

    def __init__(self, source: ByteSource, size: int, name: str, budget: Budget) -> None:
        self.name = name
        budget.add_stored(size)
        unpacked = inflate(source, name, budget)
        self.packed = unpacked is not None
        self._tree = LayeredTree(name, budget)
        self._tree.add(unpacked or source, name)

    def part(self, path: str) -> SourceRange | None:
        real = resolve(self._tree, f"/{path}")
        return self._tree.part(real) if real else None


def content(blobs: Blobs, path: str) -> bytes | None:
    """Return the content of a manifest or a configuration, or None if no file has this path.

    Raises:
        CheckFailed: if the file is larger than 4 MiB.
        Damaged: if the file is truncated.
    """
    part = blobs.part(path)
    if part is None:
        return None
    if part.size > _MOST:
        raise CheckFailed(
            f"{blobs.name}: {path} has {part.size} bytes; toolkit accepts at most {_MOST} bytes for this file"
        )
    data = part.read_at(0, part.size)
    if len(data) < part.size:
        raise Damaged(f"{blobs.name}: the image is damaged: {path} is incomplete", fix="copy the image again")
    return data


def decode_json(data: bytes, kind: type[_T], name: str) -> _T:
    """Decode JSON into a value of type ``kind``; ``name`` is the file's name in error messages.

    Raises:
        Damaged: if the text is not valid JSON of this type.
    """
    try:
        return msgspec.json.decode(data, type=kind)
    except DECODE_ERRORS as error:
        raise Damaged(f"{name}: cannot be read: {error}", fix="copy or save the image again") from error
