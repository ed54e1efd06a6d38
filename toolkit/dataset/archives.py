"""Read the files of a data set from an archive by name, without unpacking the archive to disk.

toolkit only compares the names in the archive with the expected names, so a malicious name has no effect.
toolkit ignores links in the archive.
"""

import contextlib
import gzip
import io
import lzma
import tarfile
import zlib
from collections.abc import Iterator
from typing import IO, cast

from toolkit.errors import Missing

ARCHIVE_ERRORS = (tarfile.TarError, OSError, EOFError, zlib.error, lzma.LZMAError)
"""The exceptions that Python raises for an archive that is invalid, truncated or damaged."""

_AR = b"!<arch>\n"
_AR_HEADER = 60
"""The size in bytes of a file's header in an ar archive: name, time, owner, group, mode, size and end mark
(ar(5)).
"""


class Archive:
    """The regular files below ``folder`` in a tar. ``place`` is the source of the tar, such as a host name;
    error messages begin with this text.
    """

    def __init__(self, tar: tarfile.TarFile, folder: str, place: str) -> None:
        self._tar, self._folder, self.place = tar, folder, place

    @contextlib.contextmanager
    def member(self, name: str) -> Iterator[IO[bytes]]:
        """Open a file for reading. If only ``NAME.gz`` exists, decompress this file while reading.

        Raises:
            Missing: if neither NAME nor ``NAME.gz`` exists, or the archive is damaged.
        """
        path = f"{self._folder}/{name}"
        if (stream := self._open_member(path)) is not None:
            with stream:
                yield stream
        elif (packed := self._open_member(f"{path}.gz")) is not None:
            with packed, gzip.GzipFile(fileobj=packed, mode="rb") as unpacked:
                yield cast("IO[bytes]", unpacked)
        else:
            raise Missing(f"{self.place}: the archive has no file {path}")

    def _open_member(self, path: str) -> IO[bytes] | None:
        try:
            for member in self._tar:
                if member.isreg() and member.name.removeprefix("./") == path:
                    return self._tar.extractfile(member)
        except ARCHIVE_ERRORS as error:
            raise Missing(f"{self.place}: the archive is damaged: {error}") from error
        return None


@contextlib.contextmanager
def tar(file: IO[bytes], folder: str, place: str) -> Iterator[Archive]:
    """Open a tar, which may be compressed, and yield its files below ``folder``.

    Raises:
        Missing: if the file is not a tar.
    """
    try:
        opened = tarfile.open(fileobj=file, mode="r:*")  # noqa: SIM115 - closed below
    except ARCHIVE_ERRORS as error:
        raise Missing(f"{place}: not a tar archive: {error}") from error
    with opened:
        yield Archive(opened, folder, place)


@contextlib.contextmanager
def deb(file: IO[bytes], folder: str, place: str) -> Iterator[Archive]:
    """Open a Debian package (deb(5)), and yield its files below ``folder``.

    Raises:
        Missing: if the file is not a Debian package.
    """
    for name, size in _members(file, place):
        if name.startswith("data.tar"):
            with tar(io.BytesIO(file.read(size)), folder, place) as archive:
                yield archive
            return
        file.seek(size + size % 2, io.SEEK_CUR)
    raise Missing(f"{place}: the package has no data.tar")


def _members(file: IO[bytes], place: str) -> Iterator[tuple[str, int]]:
    """Yield the name and size in bytes of each member of a Debian package. When the function yields a
    member, the next byte of ``file`` is the first byte of the member's content.
    """
    if file.read(len(_AR)) != _AR:
        raise Missing(f"{place}: not a Debian package")
    while header := file.read(_AR_HEADER):
        size = header[48:58].strip()
        if len(header) < _AR_HEADER or header[58:] != b"`\n" or not size.isdigit():
            raise Missing(f"{place}: the package is damaged")
        yield header[:16].decode("ascii", "replace").strip().rstrip("/"), int(size)
