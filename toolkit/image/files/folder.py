"""Read an image that is a folder (a sandbox)."""

import errno
import os
import stat
from pathlib import Path

from toolkit.image.files.tree import MAX_READ, Kind

_FARTHEST = 1 << 60
_NOT_THERE = {errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG, errno.ELOOP}


class FolderTree:
    """The files of a sandbox.

    Callers resolve all links with :func:`toolkit.image.files.tree.resolve` first, so that no link can lead
    out of ``root``.

    A method raises ``OSError`` if a file exists but toolkit cannot read it.
    """

    def __init__(self, root: Path) -> None:
        self._root = root

    def kind(self, path: str) -> Kind | None:
        try:
            mode = self._host_path(path).lstat().st_mode
        except ValueError:  # the name contains a NUL byte
            return None
        except OSError as error:
            if error.errno in _NOT_THERE:
                return None
            raise
        if stat.S_ISLNK(mode):
            return "link"
        if stat.S_ISDIR(mode):
            return "folder"
        return "file" if stat.S_ISREG(mode) else "other"

    def names(self, path: str) -> tuple[str, ...]:
        if self.kind(path) != "folder":
            return ()
        return tuple(os.listdir(self._host_path(path)))  # noqa: PTH208 - callers need names, not paths

    def target(self, path: str) -> str:
        return str(self._host_path(path).readlink())

    def content(self, path: str, limit: int = MAX_READ) -> bytes:
        with self._host_path(path).open("rb") as file:
            return file.read(limit)

    def piece(self, path: str, offset: int, size: int) -> bytes:
        with self._host_path(path).open("rb") as file:
            # A malicious ELF file may contain an offset that is too large for the file system.
            file.seek(min(offset, _FARTHEST))
            return file.read(size)

    def _host_path(self, path: str) -> Path:
        return self._root / path.lstrip("/")
