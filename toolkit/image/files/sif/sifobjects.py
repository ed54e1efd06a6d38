"""Read the descriptor table of a SIF (the list of its objects), and add objects (apptainer/sif: pkg/sif)."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

from toolkit.errors import BadInput, CheckFailed, Damaged

DEFINITION, LABELS, PARTITION, SIGNATURE, JSON, SBOM = 0x4001, 0x4003, 0x4004, 0x4005, 0x4006, 0x4009
"""The type numbers of SIF objects (apptainer/sif:pkg/sif/sif.go)."""

CYCLONEDX_JSON = struct.pack("<i", 1)
"""The format number of CycloneDX JSON in the descriptor of an SBOM."""

MAGIC = b"SIF_MAGIC\0"

SQUASHFS, PRIMARY = 1, 2
"""Numbers in a partition's descriptor: the file system squashfs, and the type "primary system partition"."""

_HEADER = struct.Struct("<32s10s3s3s16s8q")
_DESCRIPTOR = struct.Struct("<i?III7q128s384s")
_GROUP = 0xF0000000
_MOST = 1024
"""Maximum number of descriptors that toolkit reads; Apptainer creates tables with 48 descriptors."""
_CHUNK = 1 << 20
_AGAIN = "copy or build the SIF again"


@dataclass(frozen=True, slots=True)
class SifHeader:
    """The first 128 bytes of a SIF.

    ``fixed`` are the header bytes that a signature covers. ``created`` and ``modified`` are times in Unix
    seconds. ``total`` is the number of descriptors, and ``free`` is the number of unused descriptors.
    ``table`` and ``data`` are the offsets of the descriptor table and of the objects, in bytes.
    """

    launch: bytes
    magic: bytes
    version: bytes
    architecture: bytes
    uuid: bytes
    created: int
    modified: int
    free: int
    total: int
    table: int
    table_size: int
    data: int
    data_size: int

    @property
    def fixed(self) -> bytes:
        return self.launch + self.magic + self.version + self.uuid

    def pack(self) -> bytes:
        return _HEADER.pack(
            *(self.launch, self.magic, self.version, self.architecture, self.uuid),
            *(self.created, self.modified, self.free, self.total),
            *(self.table, self.table_size, self.data, self.data_size),
        )


@dataclass(frozen=True, slots=True)
class SifDescriptor:
    """An entry of the descriptor table, with all stored fields. An entry describes one object."""

    kind: int
    used: bool
    number: int
    group_field: int
    link_field: int
    offset: int
    size: int
    padded: int
    created: int
    modified: int
    uid: int
    gid: int
    name: bytes
    extra: bytes

    @property
    def group(self) -> int:
        """The group number of the object; 0 if the object is in no group."""
        return self.group_field & ~_GROUP

    @property
    def linked_group(self) -> int:
        """The number of the group that a signature covers; 0 if the object is not a signature of a group."""
        return self.link_field & ~_GROUP if self.link_field & _GROUP == _GROUP else 0

    @property
    def label(self) -> str:
        """The name of the object in error messages."""
        text = self.name.rstrip(b"\0").decode("utf-8", "replace")
        return f"object {self.number}" + (f" ({text})" if text.isprintable() and text else "")

    def fixed(self, first_number: int) -> bytes:
        """Return the descriptor's bytes that a signature covers; ``first_number`` is the lowest object number
        in the object's group.
        """
        numbers = struct.pack(
            "<i?IIq", self.kind, self.used, self.number - first_number, self.link_field, self.size
        )
        return numbers + struct.pack("<3q", self.created, self.uid, self.gid) + self.name + self.extra

    def pack(self) -> bytes:
        return _DESCRIPTOR.pack(
            *(self.kind, self.used, self.number, self.group_field, self.link_field),
            *(self.offset, self.size, self.padded, self.created, self.modified, self.uid, self.gid),
            *(self.name, self.extra),
        )


@dataclass(frozen=True, slots=True)
class Table:
    """The header and all descriptors of a SIF, including the unused descriptors."""

    header: SifHeader
    entries: tuple[SifDescriptor, ...]

    @property
    def used(self) -> tuple[SifDescriptor, ...]:
        return tuple(entry for entry in self.entries if entry.used)

    def in_group(self, group: int) -> tuple[SifDescriptor, ...]:
        """Return the objects of a group, sorted by object number."""
        return tuple(sorted((e for e in self.used if e.group == group), key=lambda e: e.number))


def read_table(file: BinaryIO, path: Path) -> Table:
    """Read the header and the descriptors, and check that each object is inside the file.

    Raises:
        Damaged: if the file is truncated or contains invalid numbers.
        BadInput: if the file is not a SIF.
    """
    size = file.seek(0, 2)
    file.seek(0)
    raw = file.read(_HEADER.size)
    if raw[32:42] != MAGIC:
        raise BadInput(f"{path}: not a SIF", fix="make a SIF: `toolkit image sif RECIPE`")
    if len(raw) < _HEADER.size:
        raise _cut(path, "its header", _HEADER.size, size)
    header = SifHeader(*_HEADER.unpack(raw))
    if not 0 < header.total <= _MOST or not _HEADER.size <= header.table:
        raise _damage(path, "its header has impossible values")
    wanted = header.total * _DESCRIPTOR.size
    file.seek(min(header.table, size))
    raw = file.read(wanted)
    if len(raw) < wanted:
        raise _cut(path, "its descriptor table", header.table + wanted, size)
    table = Table(header, tuple(SifDescriptor(*fields) for fields in _DESCRIPTOR.iter_unpack(raw)))
    _check(table.used, path, size)
    return table


def _check(entries: tuple[SifDescriptor, ...], path: Path, size: int) -> None:
    """Raise an error if two objects have the same number, or an object is outside the file."""
    numbers = [entry.number for entry in entries]
    if len(set(numbers)) != len(numbers):
        raise _damage(path, "two objects have the same number")
    for entry in entries:
        if entry.offset < _HEADER.size or entry.size < 0:
            raise _damage(path, f"{entry.label} has an impossible offset or size")
        if entry.offset + entry.size > size:
            raise _cut(path, entry.label, entry.offset + entry.size, size)


def _damage(path: Path, fault: str) -> Damaged:
    return Damaged(f"{path}: the SIF is damaged: {fault}", fix=_AGAIN)


def _cut(path: Path, subject: str, end: int, size: int) -> Damaged:
    return Damaged(
        f"{path}: the SIF is incomplete: {subject} ends at byte {end}, but the file has {size} bytes",
        fix=_AGAIN,
    )


def pieces(file: BinaryIO, entry: SifDescriptor) -> Iterator[bytes]:
    """Yield the content of an object in pieces, so that the whole object is never in memory."""
    file.seek(entry.offset)
    left = entry.size
    while left > 0 and (chunk := file.read(min(left, _CHUNK))):
        left -= len(chunk)
        yield chunk


def content(file: BinaryIO, entry: SifDescriptor, limit: int) -> bytes:
    """Return the first ``limit`` bytes of an object's content."""
    file.seek(entry.offset)
    return file.read(min(entry.size, limit))


@dataclass(frozen=True, slots=True)
class Object:
    """An object to add to a SIF.

    A ``group`` of 0 means no group. For a signature, ``signed_group`` is the number of the group that it
    covers.
    """

    kind: int
    content: bytes
    name: str = ""
    group: int = 1
    signed_group: int = 0
    extra: bytes = b""


def add(file: BinaryIO, path: Path, *objects: Object) -> None:
    """Add objects to a SIF that is open for reading and writing, without moving existing objects.

    The new objects get the creation time from the SIF's header, so that equal input gives equal bytes. Call
    this function on a copy of a SIF, because the file is not a valid SIF while this function writes.

    Raises:
        CheckFailed: if the descriptor table is full.
    """
    table = read_table(file, path)
    header, entries = table.header, list(table.entries)
    after_table = header.table + header.total * _DESCRIPTOR.size
    for thing in objects:
        slot = next((i for i, entry in enumerate(entries) if not entry.used), None)
        if slot is None:
            raise CheckFailed(
                f"{path}: the descriptor table has no free entry for another object, such as a signature",
                fix="build the SIF again, then sign it",
            )
        end = max([header.data, after_table, *(e.offset + e.size for e in entries if e.used)])
        entries[slot] = _descriptor_of(thing, slot + 1, end, header.created)
        file.seek(end)
        file.write(thing.content)
        data_size = end + len(thing.content) - header.data
        header = replace(header, free=header.free - 1, data_size=data_size)
    file.truncate(header.data + header.data_size)
    file.seek(header.table)
    file.write(b"".join(entry.pack() for entry in entries))
    file.seek(0)
    file.write(header.pack())
    file.flush()


def _descriptor_of(item: Object, number: int, offset: int, time: int) -> SifDescriptor:
    return SifDescriptor(
        kind=item.kind,
        used=True,
        number=number,
        group_field=item.group | _GROUP,
        link_field=item.signed_group | _GROUP if item.signed_group else 0,
        offset=offset,
        size=len(item.content),
        padded=len(item.content),
        created=time,
        modified=time,
        uid=0,
        gid=0,
        name=item.name.encode()[:128].ljust(128, b"\0"),
        extra=item.extra.ljust(384, b"\0"),
    )
