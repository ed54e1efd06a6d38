"""List the members of a tar from an untrusted source.

Python's tarfile stores all members and extended headers in memory, without a limit on their size, so this
module does not use tarfile. tar(5) describes the formats: ustar, PAX records and GNU long names.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from toolkit.errors import Damaged
from toolkit.image.files.bounded import Budget
from toolkit.image.files.source import ByteSource
from toolkit.image.files.tree import Kind

_BLOCK = 512
_EXTENDED = 1 << 20
"""Maximum size of an extended header in bytes; Go's archive/tar, which container engines use, has the same
limit."""
_LARGEST = 1 << 50
_KINDS: dict[bytes, Kind] = {
    **dict.fromkeys((b"0", b"\0", b"7", b"S"), "file"),
    **dict.fromkeys((b"5", b"D"), "folder"),
    b"2": "link",
}
_NO_DATA = (b"1", b"2", b"3", b"4", b"5", b"6")
_EXTENSIONS = (b"x", b"g", b"L", b"K")
_NOTES = (b"V", b"M", b"N", b"A", b"X")
"""Types of members that are not files: for example, a volume label, or attributes that Solaris stores for a
file."""
_RECORD = re.compile(rb"(\d{1,7}) ([^=]{1,256})=")
_ENDS = bytes(_BLOCK)


class TarMember(NamedTuple):
    """A member of a tar.

    ``offset`` and ``size`` are the position and the length of the member's data in the tar, in bytes. If
    ``hard`` is true, the member is a hard link, and ``target`` is the name of the linked member. For a
    symbolic link, ``target`` is the link's target.
    """

    name: str
    kind: Kind
    offset: int
    size: int
    target: str
    hard: bool
    sparse: bool
    """Whether the file is sparse: the tar leaves out ranges of zeros in the file."""


def is_tar(head: bytes) -> bool:
    """Return whether ``head``, at least the first 512 bytes of a file, is the header of a tar."""
    if len(head) < _BLOCK:
        return False
    try:
        return _number(head[148:156]) == _sum(head[:_BLOCK])
    except ValueError:
        return False


def entries(source: ByteSource, name: str, budget: Budget) -> Iterator[TarMember]:
    """Yield the members of a tar in their order in the archive.

    Raises:
        Damaged, CheckFailed: if the tar is damaged or truncated, or has more members than toolkit's limit.
    """
    at, headers = 0, dict[str, str]()
    while (block := _header(source, at, name)) is not None:
        budget.list()
        kind, size = _checked(block, name)
        at += _BLOCK
        if kind in _EXTENSIONS:
            headers |= _extension(source, kind, at, size, name)
            at += padded_size(size)
            continue
        size = 0 if kind in _NO_DATA else _size(headers.get("size"), size, name)
        if kind == b"S":
            at = _after_map(source, block, at, budget)
        if kind not in _NOTES:
            yield _entry(block, kind, headers, at, size)
        at, headers = at + padded_size(size), {}
        if at > _LARGEST:
            raise _broken(name, "it has a member of impossible size")


def _header(source: ByteSource, offset: int, name: str) -> bytes | None:
    """Return the header block at ``offset``, or None if the tar ends there."""
    block = source.read_at(offset, _BLOCK)
    if block == _ENDS:
        return None
    if len(block) == _BLOCK:
        return block
    # Container engines accept a tar without the two zero blocks at its end, and so does toolkit.
    # In a zstd file, missing zero blocks may also mean that the file is truncated. zstd does not report this,
    # so toolkit rejects a zstd file without the zero blocks.
    if block or source.slow or (offset and not source.read_at(offset - 1, 1)):
        raise _broken(name, "it is incomplete")
    return None


def _extension(source: ByteSource, kind: bytes, offset: int, size: int, name: str) -> dict[str, str]:
    """Return the values of an extended header by name; the values apply to the next member."""
    if size > _EXTENDED:
        raise _broken(name, f"it has an extended header of {size} bytes, more than toolkit's limit")
    # Read the padding too, because a HashingSource hashes only bytes that callers read without gaps.
    raw = source.read_at(offset, padded_size(size))[:size]
    match kind:
        case b"x":
            return _records(raw, name)
        case b"L":
            return {"path": _text(raw)}
        case b"K":
            return {"linkpath": _text(raw)}
        case _:
            return {}  # ignore a global PAX header, because it does not set the name of a file


def _entry(block: bytes, kind: bytes, headers: dict[str, str], offset: int, size: int) -> TarMember:
    path = headers.get("GNU.sparse.name") or headers.get("path") or _name(block)
    target = (headers.get("linkpath") or _text(block[157:257])) if kind in b"12" else ""
    sparse = kind == b"S" or (bool(headers) and any(key.startswith("GNU.sparse.") for key in headers))
    # Old tar formats mark a folder with a slash at the end of its name.
    shown = "folder" if kind in (b"0", b"\0") and path.endswith("/") else _KINDS.get(kind, "other")
    return TarMember(path, shown, offset, size, target, kind == b"1", sparse)


def _checked(block: bytes, name: str) -> tuple[bytes, int]:
    """Check the checksum of a header, and return the type and the size in the header."""
    try:
        if _number(block[148:156]) != _sum(block):
            raise _broken(name, "it has a header with a wrong checksum")
        size = _number(block[124:136])
    except ValueError as error:
        raise _broken(name, "it has a header with an invalid number") from error
    if size > _LARGEST:
        raise _broken(name, "it has a member of impossible size")
    return block[156:157], size


def _size(size_text: str | None, size: int, name: str) -> int:
    if size_text is None:
        return size
    if not re.fullmatch(r"[0-9]{1,15}", size_text):
        raise _broken(name, "it has a member of impossible size")
    return int(size_text)


def _sum(block: bytes) -> int:
    return sum(block) - sum(block[148:156]) + 8 * 32


def _number(field: bytes) -> int:
    """Return the value of a number field: octal digits, or GNU's binary form of a large number."""
    if field[0] == 0x80:
        return int.from_bytes(field[1:], "big")
    digits = field.partition(b"\0")[0].strip(b" ")
    if digits and not digits.isdigit():
        raise ValueError("no number")
    return int(digits or b"0", 8)


def _name(block: bytes) -> str:
    name = _text(block[:100])
    # Only ustar has the field `prefix`; the GNU format stores other fields at the same offset.
    prefix = _text(block[345:500]) if block[345] and block[257:263] == b"ustar\0" else ""
    return f"{prefix}/{name}" if prefix else name


def _text(field: bytes) -> str:
    return field.partition(b"\0")[0].decode("utf-8", "surrogateescape")


def _records(content: bytes, name: str) -> dict[str, str]:
    """Return the PAX records that toolkit uses: path, linkpath, size and the records of sparse files."""
    records: dict[str, str] = {}
    at = 0
    while at < len(content) and content[at] != 0:
        record = _RECORD.match(content, at)
        end = at + int(record[1]) if record else 0
        if record is None or not record.end() < end <= len(content) or content[end - 1] != 0x0A:
            raise _broken(name, "it has an invalid PAX header")
        key = record[2].decode("utf-8", "replace")
        if key in {"path", "linkpath", "size"} or key.startswith("GNU.sparse."):
            records[key] = content[record.end() : end - 1].decode("utf-8", "surrogateescape")
        at = end
    return records


def _after_map(source: ByteSource, block: bytes, offset: int, budget: Budget) -> int:
    """Return the offset of the data of an old GNU sparse file, after the blocks that list its data ranges."""
    more = block[482]
    while more:
        budget.list()
        following = source.read_at(offset, _BLOCK)
        more = following[504] if len(following) == _BLOCK else 0
        offset += _BLOCK
    return offset


def padded_size(size: int) -> int:
    """Return the bytes that a member's data takes in a tar: ``size``, rounded up to a multiple of 512."""
    return -(-size // _BLOCK) * _BLOCK


def _broken(name: str, fault: str) -> Damaged:
    return Damaged(f"{name}: the image is damaged: {fault}", fix="copy or save the image again")
