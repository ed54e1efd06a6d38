"""Combine an image's tar layers into one file tree. A file hides files with the same path in lower layers.

toolkit applies layers by the rules of umoci, which Apptainer uses (opencontainers/image-spec:layer.md,
opencontainers/umoci:oci/layer/tar_extract.go). Paths and links cannot leave the image's root. A whiteout file
``.wh.NAME`` removes the file NAME of the lower layers.
"""

import errno
import posixpath
from collections import OrderedDict, deque
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

from toolkit.errors import CheckFailed, Damaged
from toolkit.image.files.bounded import Budget
from toolkit.image.files.inflate import ZstdSource
from toolkit.image.files.source import ByteSource, SourceRange
from toolkit.image.files.tar import TarMember, entries
from toolkit.image.files.tree import MAX_READ, Kind

if TYPE_CHECKING:
    from zstandard import ZstdCompressor, ZstdDecompressor

_WHITEOUT: Final = ".wh."
_OPAQUE: Final = ".wh..wh..opq"
_MAX_NAME = 255
_MAX_PATH = 4095
_MAX_LINKS = 40
"""Linux's limits on the length of a file name and of a path, and on the number of links in a path
(path_resolution(7), limits.h).
"""
_HELD = 8 << 20
_CACHE_BYTES = 24 << 20
_PIECE = 1 << 20
_KEPT_LIBRARY = 8 << 20
_KEPT_TEXT = 1 << 16
_SOURCES = (".py", ".pyc", ".h", ".hpp")
"""The suffixes of files that toolkit does not cache. Most small files of a training image have these
suffixes, but toolkit reads only a few of these files.
"""


class _Folder:
    __slots__ = ("children", "layer")

    def __init__(self, layer: int) -> None:
        self.layer = layer
        self.children: dict[str, _Folder | _Leaf] = {}


@dataclass(slots=True)
class _Leaf:
    """An entry of the tree that is not a folder: a file, a link or a device.

    ``layer`` is the number of the layer that added the file, and ``source`` is the number of the layer that
    contains the file's bytes. For a hard link, ``layer`` and ``source`` may differ. ``offset`` and ``size``
    say where these bytes are in the tar of layer ``source``. ``fault`` says why toolkit cannot read the file,
    and is empty for a readable file. ``copy`` is a compressed copy of the content, if toolkit cached the
    content.
    """

    kind: Kind
    layer: int
    source: int = 0
    offset: int = 0
    size: int = 0
    target: str = ""
    fault: str = ""
    copy: bytes | None = None


class LayeredTree:
    """The combined files of all layers. Call ``add`` for each layer, from the lowest to the highest.

    ``name`` is the image's name in error messages.
    """

    def __init__(self, name: str, budget: Budget) -> None:
        self._name, self._budget = name, budget
        self._root = _Folder(0)
        self._sources: list[ByteSource] = []
        self._open: ByteSource | None = None
        self._last: tuple[str, _Folder] | None = None
        self._left = _CACHE_BYTES
        self._recent: OrderedDict[tuple[int, int], bytes] = OrderedDict()
        self._held = 0

    def add(self, source: ByteSource, name: str) -> None:
        """Add the layer whose uncompressed tar is ``source``; ``name`` is the layer's name in error messages.

        Raises:
            CheckFailed: if the layer is damaged, or a container engine would refuse the layer.
        """
        self._sources.append(source)
        self._last = None
        self._lent(len(self._sources) - 1)
        for entry in entries(source, name, self._budget):
            self._store_entry(entry, len(self._sources) - 1)

    def kind(self, path: str) -> Kind | None:
        node = self._find(path)
        return None if node is None else "folder" if isinstance(node, _Folder) else node.kind

    def names(self, path: str) -> tuple[str, ...]:
        node = self._find(path)
        return tuple(node.children) if isinstance(node, _Folder) else ()

    def target(self, path: str) -> str:
        node = self._find(path)
        return node.target if isinstance(node, _Leaf) else ""

    def content(self, path: str, limit: int = MAX_READ) -> bytes:
        node = self._find(path)
        if not isinstance(node, _Leaf) or node.kind != "file":
            return b""
        if node.fault:
            raise OSError(errno.EIO, node.fault)
        wanted = min(limit, node.size)
        if node.copy is not None:
            return _unpacker().decompress(node.copy)[:wanted]
        return self._read(node, wanted)

    def pieces(self, path: str) -> Iterator[bytes]:
        """Yield the content of a file in pieces, so that a large file is never completely in memory."""
        node = self._find(path)
        if not isinstance(node, _Leaf) or node.copy is not None or node.fault or node.kind != "file":
            yield self.content(path)
            return
        source = self._lent(node.source)
        for at in range(0, node.size, _PIECE):
            wanted = min(_PIECE, node.size - at)
            yield self._checked(source.read_at(node.offset + at, wanted), wanted)

    def part(self, path: str) -> SourceRange | None:
        """Return a file as a range of bytes in its layer, or None if ``path`` is not a readable file."""
        node = self._find(path)
        if not isinstance(node, _Leaf) or node.kind != "file" or node.fault:
            return None
        return SourceRange(self._sources[node.source], node.offset, node.size)

    def _read(self, leaf: _Leaf, size: int) -> bytes:
        key = leaf.source, leaf.offset
        content = self._recent.pop(key, b"")
        self._held -= len(content)
        if len(content) < size:
            content = self._checked(self._lent(leaf.source).read_at(leaf.offset, size), size)
        self._recent[key] = content
        self._held += len(content)
        while self._held > _HELD:
            self._held -= len(self._recent.popitem(last=False)[1])
        return content[:size]

    def _checked(self, data: bytes, size: int) -> bytes:
        if len(data) < size:
            raise Damaged(
                f"{self._name}: the image is damaged: it is incomplete", fix="copy or save the image again"
            )
        return data

    def _lent(self, number: int) -> ByteSource:
        """Return the source of the uncompressed tar of layer ``number``.

        toolkit keeps the zstd decoder of only one layer at a time, because each decoder needs memory for its
        window.
        """
        source = self._sources[number]
        if self._open is not source:
            if isinstance(self._open, ZstdSource):
                self._open.rest()
            self._open = source
        return source

    def _find(self, path: str) -> "_Folder | _Leaf | None":
        node: _Folder | _Leaf = self._root
        for part in path.split("/"):
            if not part:
                continue
            below = node.children.get(part) if isinstance(node, _Folder) else None
            if below is None:
                return None
            node = below
        return node

    def _store_entry(self, entry: TarMember, layer: int) -> None:
        above, name = posixpath.split(self._clean(entry.name))
        if not name:
            return  # this archive member is the image's root folder
        folder = self._folder(above, layer)
        if name.startswith(_WHITEOUT):
            self._hide(folder, name, layer)
            return
        node = folder.children.get(name)
        if entry.kind == "folder" and isinstance(node, _Folder):
            node.layer = layer
            return
        if len(entry.target) > _MAX_PATH:
            raise self._refusal(
                f"the target of a link in the image has {len(entry.target)} characters; "
                f"Linux allows {_MAX_PATH}"
            )
        self._budget.keep(_weight(name) + _weight(entry.target))
        if isinstance(node, _Folder):
            self._last = None
        folder.children[name] = _Folder(layer) if entry.kind == "folder" else self._leaf(entry, layer)

    def _leaf(self, entry: TarMember, layer: int) -> _Leaf:
        if entry.hard:
            return self._other_name(entry, layer)
        why = "the layer stores it as a sparse file" if entry.sparse else ""
        target = entry.target if entry.kind == "link" else ""
        leaf = _Leaf(entry.kind, layer, layer, entry.offset, entry.size, target, why)
        if self._sources[layer].slow and entry.kind == "file" and not why:
            leaf.copy = self._keep(entry, self._sources[layer])
        return leaf

    def _other_name(self, entry: TarMember, layer: int) -> _Leaf:
        above, name = posixpath.split(self._clean(entry.target))
        leaf = self._folder(above, layer).children.get(name)
        if not isinstance(leaf, _Leaf):
            return _Leaf("file", layer, fault=f"it is a hard link to {entry.target}, which does not exist")
        return _Leaf(
            leaf.kind, layer, leaf.source, leaf.offset, leaf.size, leaf.target, leaf.fault, leaf.copy
        )

    def _keep(self, entry: TarMember, source: ByteSource) -> bytes | None:
        """Return a compressed copy of a file for later reads, because backward reads in a zstd layer are
        slow. Return None if toolkit does not cache the file.
        """
        if self._left <= 0 or entry.size > _KEPT_LIBRARY or entry.name.endswith(_SOURCES):
            return None
        if entry.size > _KEPT_TEXT and source.read_at(entry.offset, 4) != b"\x7fELF":
            return None
        compressed = _packer().compress(source.read_at(entry.offset, entry.size))
        self._left -= len(compressed)
        return compressed

    def _hide(self, folder: _Folder, name: str, layer: int) -> None:
        """Apply the whiteout file ``name`` of a layer to ``folder``.

        ``.wh.NAME`` removes the entry NAME of the lower layers; ``.wh..wh..opq`` removes all entries of the
        lower layers.
        """
        self._last = None
        if name == _OPAQUE:
            self._prune(folder, layer)
        elif not name.startswith(_WHITEOUT * 2):  # aufs uses the prefix .wh..wh. for its own data
            hidden = name.removeprefix(_WHITEOUT)
            below = folder.children.get(hidden)
            if below is not None and below.layer < layer:
                del folder.children[hidden]
            elif isinstance(below, _Folder):
                self._prune(below, layer)

    def _prune(self, folder: _Folder, layer: int) -> None:
        waiting = [folder]
        while waiting:
            branch = waiting.pop()
            self._budget.look(1 + len(branch.children))
            branch.children = {name: below for name, below in branch.children.items() if below.layer >= layer}
            waiting += [below for below in branch.children.values() if isinstance(below, _Folder)]

    def _folder(self, path: str, layer: int) -> _Folder:
        """Return the folder at ``path``, to which layer ``layer`` adds a file.

        Links in the path cannot lead out of the image's root. This function creates missing folders.
        """
        if self._last and self._last[0] == path:
            return self._last[1]
        above, rest, links = [self._root], deque(_parts(path)), 0
        while rest:
            part = rest.popleft()
            if part == "..":
                del above[max(len(above) - 1, 1) :]
                continue
            below = above[-1].children.get(part)
            # A folder of this layer replaces a file with the same path in a lower layer.
            if below is None or (isinstance(below, _Leaf) and below.kind != "link" and below.layer < layer):
                self._budget.keep(_weight(part))
                above[-1].children[part] = below = _Folder(layer)
            if isinstance(below, _Folder):
                below.layer = layer
                above.append(below)
                continue
            links += 1
            if below.kind != "link":
                raise self._refusal(
                    f"it has a file below the path {_short_name(path)}, but this path is not a folder"
                )
            if links > _MAX_LINKS or len(below.target) > _MAX_PATH:
                raise self._refusal(f"the links in the path {_short_name(path)} form a loop")
            self._budget.look(1 + len(below.target))
            above = [self._root] if below.target.startswith("/") else above
            rest.extendleft(reversed(_parts(below.target)))
        self._last = path, above[-1]
        return above[-1]

    def _clean(self, name: str) -> str:
        """Return the name of an archive member as a normalised path below the image's root.

        Raises:
            CheckFailed: if the path leaves the root, or is longer than Linux allows.
        """
        if len(name) > _MAX_PATH:
            raise self._refusal(f"it has a path of {len(name)} characters; Linux allows {_MAX_PATH}")
        path = posixpath.normpath(name.lstrip("/")) if name.strip("/") else ""
        if path == ".." or path.startswith("../"):
            raise self._refusal(
                f"a file in the image has the path {_short_name(name)}, which points outside the image"
            )
        if len(path) > _MAX_NAME and any(len(part) > _MAX_NAME for part in path.split("/")):
            raise self._refusal(f"it has a file with a name of more than {_MAX_NAME} characters")
        return "" if path == "." else path

    def _refusal(self, fault: str) -> CheckFailed:
        return CheckFailed(f"{self._name}: {fault}", fix="build the image again from sources that you trust")


@cache
def _packer() -> "ZstdCompressor":
    import zstandard

    return zstandard.ZstdCompressor(level=1)


@cache
def _unpacker() -> "ZstdDecompressor":
    import zstandard

    return zstandard.ZstdDecompressor()


def _parts(path: str) -> list[str]:
    return [p for p in path.split("/") if p not in {"", "."}]


def _weight(text: str) -> int:
    return len(text) if text.isascii() else 4 * len(text)


def _short_name(name: str) -> str:
    """Return the name of an archive member for a message: one line of at most 80 characters."""
    short = name if len(name) <= 80 else f"{name[:80]}…"
    return short if short.isprintable() else ascii(short)
