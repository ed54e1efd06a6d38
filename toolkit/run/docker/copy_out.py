"""Copy one file out of a container safely. A program in the container may have replaced this file, for
example with a symbolic link or a huge file.
"""

import io
import shutil
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.errors import CheckFailed

if TYPE_CHECKING:
    from docker.models.containers import Container

_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class CopyOut:
    """A file to copy: its ``path`` in the container, its ``target`` on this machine, and its maximum size
    ``limit`` in bytes.
    """

    path: str
    target: Path
    limit: int


class ChunkReader(io.RawIOBase):
    """A file object that reads from an iterator of chunks. A caller can read the content only once."""

    def __init__(self, stream: Iterator[bytes]) -> None:
        self._stream, self._rest = stream, b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "memoryview") -> int:  # type: ignore[override]
        while not self._rest:
            chunk = next(self._stream, None)
            if chunk is None:
                return 0
            self._rest = chunk
        part, self._rest = self._rest[: len(buffer)], self._rest[len(buffer) :]
        buffer[: len(part)] = part
        return len(part)


def copy_out(container: "Container", output: CopyOut) -> None:
    """Copy a regular file out of a container.

    Raises:
        CheckFailed: if the file is not a regular file, or larger than ``output.limit`` bytes.
    """
    stream, _ = container.get_archive(output.path, chunk_size=_CHUNK)
    with tarfile.open(fileobj=ChunkReader(iter(stream)), mode="r|") as tar:
        entry = tar.next()
        content = tar.extractfile(entry) if entry is not None and entry.isreg() else None
        if entry is None or content is None or entry.size > output.limit:
            raise CheckFailed(
                f"the file {output.path} in the container is not a regular file of at most"
                f" {output.limit >> 20} MiB"
            )
        with output.target.open("wb") as file:
            shutil.copyfileobj(content, file, _CHUNK)
