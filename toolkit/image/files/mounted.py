"""Combine the files of an image with a file system that the runtime mounts over a folder of the image."""

import posixpath
from collections.abc import Mapping

from toolkit.folders import is_below
from toolkit.image.files.tree import MAX_READ, FileTree, Kind, Sliced


class MountedTree:
    """The files of the image ``base``, and the file system ``mount`` that the runtime mounts at
    ``mount_point``.

    ``texts`` maps paths to contents. toolkit adds these files; they hide the files with the same paths in
    ``base`` and ``mount``.
    """

    def __init__(self, base: FileTree, mount: FileTree, mount_point: str, texts: Mapping[str, str]) -> None:
        self._base, self._mount, self._mount_point = base, mount, mount_point
        self._texts = {path: text.encode() for path, text in texts.items()}
        self._added: dict[str, set[str]] = {}
        waiting = [mount_point, *texts]
        while waiting:
            folder, name = posixpath.split(waiting.pop())
            self._added.setdefault(folder, set()).add(name)
            waiting += [folder] if folder != "/" else []

    def kind(self, path: str) -> Kind | None:
        if path in self._texts:
            return "file"
        if (inside := self._inside(path)) is not None:
            return self._mount.kind(inside)
        kind = self._base.kind(path)
        return kind if kind is not None or path not in self._added else "folder"

    def names(self, path: str) -> tuple[str, ...]:
        if (inside := self._inside(path)) is not None:
            return self._mount.names(inside)
        return tuple(dict.fromkeys((*self._base.names(path), *sorted(self._added.get(path, ())))))

    def target(self, path: str) -> str:
        inside = self._inside(path)
        return self._base.target(path) if inside is None else self._mount.target(inside)

    def content(self, path: str, limit: int = MAX_READ) -> bytes:
        if path in self._texts:
            return self._texts[path][:limit]
        inside = self._inside(path)
        return self._base.content(path, limit) if inside is None else self._mount.content(inside, limit)

    def piece(self, path: str, offset: int, size: int) -> bytes:
        inside = self._inside(path)
        tree = self._base if inside is None else self._mount
        if path in self._texts or not isinstance(tree, Sliced):
            return self.content(path)[offset : offset + size]
        return tree.piece(path if inside is None else inside, offset, size)

    def _inside(self, path: str) -> str | None:
        return path.removeprefix(self._mount_point) or "/" if is_below(path, self._mount_point) else None
