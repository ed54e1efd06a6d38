"""Write the files of a folder as a zstd squashfs, without root; equal folders give equal bytes.

Linux's Documentation/filesystems/squashfs.rst describes the format. All files belong to root, have the same
modification time, and are readable for all users. The data of compiled Python modules (``.pyc``) comes first,
because a Python program reads these modules when it starts.
"""

import os
import stat
import struct
import threading
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from toolkit.errors import BadInput

if TYPE_CHECKING:
    from zstandard import ZstdCompressor

BLOCK = 1 << 18
"""The block size in bytes.

For ``import torch``, blocks of 128 KiB need more reads than blocks of 256 KiB. Blocks of 1 MiB need twice the
CPU time of blocks of 256 KiB (docs/startup.md).
"""
_METADATA = 8192
_LEVEL = 3
"""The compression level of zstd. Low levels are fast, and toolkit packs the whole squashfs again after each
change of a package.
"""
_PLAIN, _PLAIN_TABLE = 1 << 24, 0x8000
_NONE32, _NONE64 = 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF
_ZSTD, _NO_XATTRS = 6, 0x0200
_HEAD = struct.Struct("<5I6H8Q")
_PAGE = 4096
_SPAN = 256
"""squashfs stores the entries of a folder in groups. Linux accepts at most this number of entries per group.
"""
_FIRST = (".pyc", ".so")
_SMALL, _LARGE = 1 << 16, 1 << 32


@dataclass(slots=True)
class _Node:
    name: bytes
    mode: int
    number: int = 0
    path: str = ""
    target: bytes = b""
    size: int = 0
    start: int = 0
    words: list[int] = field(default_factory=list)
    fragment: int = _NONE32
    offset: int = 0
    children: "list[_Node] | None" = None
    kind: int = 2
    reference: int = 0


class _Table:
    """A table that squashfs stores in metadata blocks.

    A position in the table consists of the offset of a stored block and an offset in the unpacked block.
    """

    def __init__(self) -> None:
        self.stored, self._open = bytearray(), bytearray()

    def place(self) -> tuple[int, int]:
        return len(self.stored), len(self._open)

    def put(self, data: bytes) -> None:
        self._open += data
        while len(self._open) >= _METADATA:
            self._store(bytes(self._open[:_METADATA]))
            del self._open[:_METADATA]

    def end(self) -> bytes:
        if self._open:
            self._store(bytes(self._open))
            self._open.clear()
        return bytes(self.stored)

    def _store(self, data: bytes) -> None:
        packed = _packed(data)
        plain = len(packed) >= len(data)
        self.stored += struct.pack("<H", len(data) | _PLAIN_TABLE if plain else len(packed))
        self.stored += data if plain else packed


def write_squashfs(root: Path, file: BinaryIO, time: int) -> int:
    """Write the files below ``root`` as a squashfs to ``file``; return the size of the squashfs in bytes.

    Args:
        root: the folder to pack; toolkit does not follow links in this folder.
        file: a new file, open for writing; the squashfs starts at position 0.
        time: the modification time of every file in Unix seconds.

    Raises:
        BadInput: if the folder contains a device, a pipe or a socket.
        OSError: if toolkit cannot read a file, or the disk is full.
    """
    top = _node(os.fsencode(root), b"")
    nodes = list(_number_inodes(top))
    file.write(bytes(_HEAD.size))
    fragments = _write_data([node for node in nodes if node.kind == 2], file)
    inodes, folders = _Table(), _Table()
    _write_inode(top, len(nodes) + 1, inodes, folders, time)
    places = []
    for table in (inodes, folders):
        places.append(file.tell())
        file.write(table.end())
    fragment_at = _write_index(fragments, 512, file)
    ids_at = _write_index([struct.pack("<I", 0)], 2048, file)
    used = file.tell()
    file.write(bytes(-used % _PAGE))
    file.seek(0)
    file.write(
        _HEAD.pack(
            *(0x73717368, len(nodes), time, BLOCK, len(fragments)),
            *(_ZSTD, BLOCK.bit_length() - 1, _NO_XATTRS, 1, 4, 0),
            *(top.reference, used, ids_at, _NONE64, places[0], places[1], fragment_at, _NONE64),
        )
    )
    return used + -used % _PAGE


def _node(path: bytes, name: bytes) -> _Node:
    status = os.lstat(path)
    executable = 0o755 if status.st_mode & 0o111 else 0o644
    if stat.S_ISDIR(status.st_mode):
        below = [_node(os.path.join(path, entry), entry) for entry in sorted(os.listdir(path))]  # noqa: PTH118, PTH208 - bytes
        return _Node(name, 0o755, children=below, kind=1)
    if stat.S_ISLNK(status.st_mode):
        return _Node(name, 0o777, target=os.readlink(path), kind=3)  # noqa: PTH115 - bytes
    if not stat.S_ISREG(status.st_mode):
        raise BadInput(
            f"{os.fsdecode(path)}: a device, pipe or socket; toolkit can pack only files, folders and links"
        )
    return _Node(name, executable, path=os.fsdecode(path), size=status.st_size)


def _number_inodes(node: _Node) -> Iterator[_Node]:
    """Give inode numbers to the nodes below ``node``, then to ``node``; yield the nodes in this order."""
    count = 0
    waiting = [(node, False)]
    while waiting:
        inode, entered = waiting.pop()
        if inode.children and not entered:
            waiting.append((inode, True))
            waiting.extend((node, False) for node in reversed(inode.children))
            continue
        count += 1
        inode.number = count
        yield inode


def _write_data(files: list[_Node], file: BinaryIO) -> list[bytes]:
    """Write the data blocks, and return the fragment table, which lists the blocks that small files share."""
    fragments: list[bytes] = []
    waiting: deque[tuple[Future[bytes], bytes, _Node | None]] = deque()

    def store(limit: int) -> None:
        while len(waiting) > limit:
            packing, raw, node = waiting.popleft()
            packed = packing.result()
            plain = len(packed) >= len(raw)
            word = len(raw) | _PLAIN if plain else len(packed)
            at = file.tell()
            file.write(raw if plain else packed)
            if node is None:
                fragments.append(struct.pack("<QII", at, word, 0))
            else:
                node.start = node.start or at
                node.words.append(word)

    workers = len(os.sched_getaffinity(0))
    with ThreadPoolExecutor(workers) as pool:
        for raw, node in _blocks(sorted(files, key=_order)):
            waiting.append((pool.submit(_packed, raw), raw, node))
            store(4 * workers)
        store(0)
    return fragments


def _order(node: _Node) -> tuple[int, str]:
    suffix = os.path.splitext(node.path)[1]  # noqa: PTH122 - Path objects are slow for thousands of names
    return (_FIRST.index(suffix) if suffix in _FIRST else len(_FIRST), node.path)


def _blocks(files: list[_Node]) -> Iterator[tuple[bytes, _Node | None]]:
    """Yield each data block with its file, or with None for a block of several small files."""
    gathered, count = bytearray(), 0
    for node in files:
        with Path(node.path).open("rb") as file:
            if node.size >= BLOCK:
                yield from ((_exactly(file, min(BLOCK, left)), node) for left in _remaining_sizes(node.size))
                continue
            if len(gathered) + node.size > BLOCK:
                yield bytes(gathered), None
                gathered.clear()
                count += 1
            if node.size:
                node.fragment, node.offset = count, len(gathered)
                gathered += _exactly(file, node.size)
    if gathered:
        yield bytes(gathered), None


def _remaining_sizes(size: int) -> Iterator[int]:
    return iter(range(size, 0, -BLOCK))


def _exactly(file: BinaryIO, size: int) -> bytes:
    data = file.read(size)
    if len(data) != size:
        raise OSError(None, "the file changed while toolkit packed it", file.name)
    return data


_HELD = threading.local()


def _packed(data: bytes) -> bytes:
    compressor: ZstdCompressor | None = getattr(_HELD, "compressor", None)
    if compressor is None:
        import zstandard

        compressor = _HELD.compressor = zstandard.ZstdCompressor(level=_LEVEL)
    return compressor.compress(data)


def _write_inode(node: _Node, parent: int, inodes: _Table, folders: _Table, time: int) -> None:
    for below in node.children or ():
        _write_inode(below, node.number, inodes, folders, time)
    kind, rest = _rest(node, parent, folders)
    start, offset = inodes.place()
    node.reference = start << 16 | offset
    inodes.put(struct.pack("<HHHHII", kind, node.mode, 0, 0, time, node.number) + rest)


def _rest(node: _Node, parent: int, folders: _Table) -> tuple[int, bytes]:
    """Return the type number of an inode, and the fields after the header that all inodes have."""
    if node.children is not None:
        start, offset = folders.place()
        size = sum(map(len, entries := list(_entries(node.children)))) + 3
        for entry in entries:
            folders.put(entry)
        links = 2 + sum(child.kind == 1 for child in node.children)
        if size < _SMALL:
            return 1, struct.pack("<IIHHI", start, links, size, offset, parent)
        return 8, struct.pack("<IIIIHHI", links, size, start, parent, 0, offset, _NONE32)
    if node.kind == 3:
        return 3, struct.pack("<II", 1, len(node.target)) + node.target
    words = struct.pack(f"<{len(node.words)}I", *node.words)
    if node.start < _LARGE and node.size < _LARGE:
        return 2, struct.pack("<4I", node.start, node.fragment, node.offset, node.size) + words
    numbers = (node.start, node.size, 0, 1, node.fragment, node.offset, _NONE32)
    return 9, struct.pack("<QQQIIII", *numbers) + words


def _entries(children: list[_Node]) -> Iterator[bytes]:
    """Yield the bytes of a folder's entries. A header precedes each group of entries whose inodes are in one
    metadata block.
    """
    at = 0
    while at < len(children):
        first, span = children[at], list[_Node]()
        for node in children[at : at + _SPAN]:
            near = abs(node.number - first.number) < 1 << 15
            if node.reference >> 16 != first.reference >> 16 or not near:
                break
            span.append(node)
        yield struct.pack("<3I", len(span) - 1, first.reference >> 16, first.number)
        for node in span:
            head = (node.reference & 0xFFFF, node.number - first.number, node.kind, len(node.name) - 1)
            yield struct.pack("<HhHH", *head) + node.name
        at += len(span)


def _write_index(entries: list[bytes], limit: int, file: BinaryIO) -> int:
    """Write a table in blocks of at most ``limit`` entries, then the offsets of these blocks; return the
    position in ``file`` of this list of offsets.
    """
    starts = []
    for at in range(0, len(entries), limit):
        table = _Table()
        table.put(b"".join(entries[at : at + limit]))
        starts.append(file.tell())
        file.write(table.end())
    place = file.tell()
    file.write(struct.pack(f"<{len(starts)}Q", *starts))
    return place
