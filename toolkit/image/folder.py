"""A sandbox: an image that is unpacked in a folder."""

import os
from pathlib import Path

from toolkit.image.tree import MAX_READ, Kind


class FolderTree:
    """Reads below ``root``; the kernel never follows a link for us, so none can lead out."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def kind(self, path: str) -> Kind | None:
        here = self._here(path)
        if here.is_symlink():
            return "link"
        if here.is_dir():
            return "folder"
        if here.is_file():
            return "file"
        return "other" if here.exists() else None

    def names(self, path: str) -> tuple[str, ...]:
        try:
            return tuple(os.listdir(self._here(path)))  # noqa: PTH208 - names are wanted, not paths
        except OSError:
            return ()

    def target(self, path: str) -> str:
        return str(self._here(path).readlink())

    def content(self, path: str, limit: int = MAX_READ) -> bytes:
        try:
            with self._here(path).open("rb") as file:
                return file.read(limit)
        except OSError:
            return b""

    def _here(self, path: str) -> Path:
        return self._root / path.lstrip("/")
