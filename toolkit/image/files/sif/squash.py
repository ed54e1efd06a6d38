"""Read a squashfs without mounting it, one folder and one file at a time.

The library PySquashfsImage does not support lz4, and it reads the whole tree when it opens an image. It also
trusts every number in the image, so a damaged image can fill the memory. This module reads only the needed
parts of a squashfs and checks every number in these parts. Linux's Documentation/filesystems/squashfs.rst
describes the format.
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import BinaryIO

from toolkit.errors import Damaged
from toolkit.image.files.bounded import Budget
from toolkit.image.files.sif.expand import expand
from toolkit.image.files.sif.squash_codec import codec_of, method
from toolkit.image.files.tree import MAX_READ, Kind

_SUPERBLOCK = struct.Struct("<5I6H8Q")
_MAGIC = 0x73717368
_METADATA = 8192
_NO_FRAGMENT = 0xFFFFFFFF
_STORED = 1 << 24
_KINDS: dict[int, Kind] = {1: "folder", 8: "folder", 2: "file", 9: "file", 3: "link", 10: "link"}
_MAX_NAMES = 200_000
_MAX_NAME = 256
_MAX_DEPTH = 256
_COST = {"lz4": 8}
"""``Budget`` limits the bytes that toolkit reads from an image. toolkit counts each LZ4-compressed byte eight
times, because its LZ4 decoder is Python code, and eight times slower than the C libraries for other codecs.
"""
_MAX_BLOCKS = 1 << 14
"""Maximum number of blocks of one file; with mksquashfs's default block size, these blocks are 2 GiB."""


@dataclass(frozen=True, slots=True)
class _Inode:
    kind: Kind
    size: int = 0
    start: int = 0
    offset: int = 0
    fragment: int = _NO_FRAGMENT
    blocks: bytes = b""
    """The list of the file's blocks as the squashfs stores it: a list of thousands of Python integers would
    take more memory.
    """
    target: str = ""


class SquashTree:
    """The files of a squashfs that starts at ``offset`` in ``file``. Error messages begin with ``name``."""

    def __init__(self, file: BinaryIO, offset: int, name: str, budget: Budget | None = None) -> None:
        self._file, self._offset, self._name = file, offset, name
        self._budget = budget or Budget(name)
        fields = _SUPERBLOCK.unpack(self._bytes(0, _SUPERBLOCK.size))
        if fields[0] != _MAGIC or fields[9] != 4:
            raise self._broken("it has no superblock of squashfs version 4")
        self._block_size, self._fragments = fields[3], fields[4]
        if not 4096 <= self._block_size <= 1 << 20:
            raise self._broken(f"it has an impossible block size of {self._block_size} bytes")
        self._codec = codec_of(fields[5], name)
        self.compression = method(fields[5])
        self._root, _, _, _, self._inodes, self._folders, self._fragment_table, _ = fields[11:19]
        self._metadata = lru_cache(maxsize=2048)(self._read_metadata)
        self._listing = lru_cache(maxsize=4096)(self._read_listing)
        self._inode = lru_cache(maxsize=512)(self._read_inode)
        self._block = lru_cache(maxsize=16)(self._read_block)

    def kind(self, path: str) -> Kind | None:
        inode = self._find(path)
        return inode.kind if inode else None

    def names(self, path: str) -> tuple[str, ...]:
        inode = self._find(path)
        return tuple(self._listing(inode)) if inode and inode.kind == "folder" else ()

    def target(self, path: str) -> str:
        inode = self._find(path)
        return inode.target if inode else ""

    def content(self, path: str, limit: int = MAX_READ) -> bytes:
        return self.piece(path, 0, limit)

    def piece(self, path: str, offset: int, size: int) -> bytes:
        """Return ``size`` bytes of a file from ``offset``, without unpacking the blocks before ``offset``."""
        inode = self._find(path)
        if inode is None or inode.kind != "file":
            return b""
        end = min(offset + size, inode.size)
        parts, position, at = list[bytes](), inode.start, 0
        for (word,) in struct.iter_unpack("<I", inode.blocks):
            if at >= end:
                break
            stored, expected = word & (_STORED - 1), min(self._block_size, inode.size - at)
            if at + expected > offset:
                block = self._data(position, word, expected) if stored else self._gap(expected)
                parts.append(block[max(0, offset - at) : end - at])
            position += stored
            at += expected
        if inode.fragment != _NO_FRAGMENT and at < end:
            rest = self._tail(inode.fragment)[inode.offset : inode.offset + inode.size - at]
            parts.append(rest[max(0, offset - at) : end - at])
        return b"".join(parts)

    def _find(self, path: str) -> _Inode | None:
        parts = [p for p in path.split("/") if p]
        if len(parts) > _MAX_DEPTH:
            return None
        inode = self._inode(self._root)
        for part in parts:
            if inode.kind != "folder":
                return None
            reference = self._listing(inode).get(part)
            if reference is None:
                return None
            inode = self._inode(reference)
        return inode

    def _read_listing(self, folder: _Inode) -> dict[str, int]:
        """Return the names in a folder, each with the reference of its inode."""
        left = folder.size - 3  # the size counts three bytes for "." and "..", which squashfs does not store
        entries: dict[str, int] = {}
        if left <= 0:
            return entries
        take = self._cursor(self._folders, folder.start, folder.offset)
        while left > 0:
            count, start, _ = struct.unpack("<3I", take(12))
            left -= 12
            for _ in range(count + 1):
                offset, _, _, length = struct.unpack("<HhHH", take(8))
                name = take(length + 1).decode("utf-8", "surrogateescape")
                left -= 8 + length + 1
                self._budget.look()
                self._budget.keep(len(name))
                if "/" in name or length >= _MAX_NAME or len(entries) >= _MAX_NAMES:
                    raise self._broken("a folder in it has too many entries or an entry with an invalid name")
                entries[name] = start << 16 | offset
                if left <= 0:
                    break
        return entries

    def _read_inode(self, reference: int) -> _Inode:
        take = self._cursor(self._inodes, reference >> 16, reference & 0xFFFF)
        kind_number = struct.unpack("<H14x", take(16))[0]
        kind = _KINDS.get(kind_number, "other")
        match kind_number:
            case 1:
                start, _, size, offset, _ = struct.unpack("<IIHHI", take(16))
                return _Inode(kind, size, start, offset)
            case 8:
                _, size, start, _, _, offset, _ = struct.unpack("<IIIIHHI", take(24))
                return _Inode(kind, size, start, offset)
            case 2:
                start, fragment, offset, size = struct.unpack("<4I", take(16))
                return self._file_inode(take, size, start, fragment, offset)
            case 9:
                start, size, _, _, fragment, offset, _ = struct.unpack("<QQQIIII", take(40))
                return self._file_inode(take, size, start, fragment, offset)
            case 3 | 10:
                _, length = struct.unpack("<II", take(8))
                if length > 65536:
                    raise self._broken("it has a link of impossible length")
                return _Inode(kind, length, target=take(length).decode("utf-8", "surrogateescape"))
            case _:
                return _Inode(kind)

    def _file_inode(
        self, take: Callable[[int], bytes], size: int, start: int, fragment: int, offset: int
    ) -> _Inode:
        count = size // self._block_size
        if fragment == _NO_FRAGMENT and size % self._block_size:
            count += 1
        # Limit the list of blocks, so that a malicious file size cannot fill the memory.
        listed = min(count, _MAX_BLOCKS)
        blocks = take(4 * listed)
        return _Inode("file", size, start, offset, fragment if listed == count else _NO_FRAGMENT, blocks)

    def _tail(self, fragment: int) -> bytes:
        if fragment >= self._fragments:
            raise self._broken("it refers to a fragment that does not exist")
        index = self._bytes(self._fragment_table + fragment // 512 * 8, 8)
        block, _ = self._metadata(struct.unpack("<Q", index)[0])
        start, word, _ = self._unpack("<QII", block, fragment % 512 * 16)
        return self._block(start, word)

    def _data(self, position: int, word: int, size: int) -> bytes:
        """Return a data block of a file, and check that the unpacked block has ``size`` bytes. Linux makes
        the same check (fs/squashfs/file_direct.c).
        """
        block = self._block(position, word)
        if len(block) != size:
            raise self._broken(f"it has a block of {len(block)} bytes where {size} are expected")
        return block

    def _gap(self, size: int) -> bytes:
        self._budget.read(size)
        return bytes(size)

    def _read_block(self, position: int, word: int) -> bytes:
        stored = word & (_STORED - 1)
        # Linux also rejects a block that is stored in more bytes than the block size (fs/squashfs/block.c).
        if stored > self._block_size:
            raise self._broken(f"it has a block with {stored} stored bytes, more than the block size")
        return self._content(position, stored, self._block_size, plain=bool(word & _STORED))

    def _cursor(self, table: int, block: int, offset: int) -> Callable[[int], bytes]:
        """Return a function that reads the next bytes of a metadata table, across its blocks if necessary.

        The first read starts at ``offset`` in the unpacked block at position ``block`` of the table.
        """
        data, following = self._metadata(table + block)
        data = data[offset:]

        def take(count: int) -> bytes:
            nonlocal data, following
            while len(data) < count:
                more, following = self._metadata(following)
                data += more
            part, data = data[:count], data[count:]
            return part

        return take

    def _read_metadata(self, position: int) -> tuple[bytes, int]:
        """Return the unpacked content of a metadata block, and the position of the next block."""
        (word,) = struct.unpack("<H", self._bytes(position, 2))
        stored = word & 0x7FFF
        if not 0 < stored <= _METADATA:
            raise self._broken("it has a metadata block of impossible size")
        content = self._content(position + 2, stored, _METADATA, plain=bool(word & 0x8000))
        if not content:
            raise self._broken("it has an empty metadata block")
        return content, position + 2 + stored

    def _content(self, position: int, stored_size: int, limit: int, *, plain: bool) -> bytes:
        """Return the unpacked content of a block, and subtract the work from the budget.

        ``stored_size`` is the size in bytes of the stored block, and ``limit`` is the maximum size of the
        content. If ``plain`` is true, the block is not compressed.
        """
        raw = self._bytes(position, stored_size)
        self._budget.read(stored_size if plain else _COST.get(self._codec, 1) * stored_size)
        if plain:
            return raw
        try:
            content = expand(self._codec, raw, limit)
        except ValueError as error:
            raise self._broken(f"toolkit cannot decompress a block ({error})") from error
        self._budget.read(len(content))
        return content

    def _unpack(self, form: str, data: bytes, offset: int) -> tuple[int, ...]:
        try:
            return struct.unpack_from(form, data, offset)
        except struct.error as error:
            raise self._broken("its fragment table is too short") from error

    def _bytes(self, position: int, count: int) -> bytes:
        if position < 0 or position > 1 << 48:
            raise self._broken("it refers to an address outside the file")
        self._file.seek(self._offset + position)
        data = self._file.read(count)
        if len(data) != count:
            raise self._broken("it is incomplete")
        return data

    def _broken(self, fault: str) -> Damaged:
        return Damaged(
            f"{self._name}: the image is damaged: {fault}",
            fix="copy the image again and compare its SHA-256, or build the image again",
        )
