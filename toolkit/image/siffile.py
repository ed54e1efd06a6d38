"""Read the header and the descriptors of a SIF (apptainer/sif:pkg/sif/sif.go)."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from toolkit.errors import BadInput, CheckFailed

_HEADER = struct.Struct("<32s10s3s3s16s8q")
_DESCRIPTOR = struct.Struct("<i?III7q128s384s")
_MAGIC = b"SIF_MAGIC\0"
_MOST = 1024
"""Descriptors in a sane file: sif(1) makes 48."""
_PARTITION = 0x4004
_LABELS = 0x4003
_SQUASHFS = 1
_PRIMARY = 2
_ARCHITECTURES = {
    "01": "i386",
    "02": "x86_64",
    "03": "arm",
    "04": "aarch64",
    "05": "ppc64",
    "06": "ppc64le",
    "11": "s390x",
    "12": "riscv64",
}


@dataclass(frozen=True, slots=True)
class Descriptor:
    """One object in a SIF."""

    kind: int
    offset: int
    size: int
    name: str
    extra: bytes


@dataclass(frozen=True, slots=True)
class Sif:
    """What is in a SIF; ``root`` is the partition that a container starts from."""

    architecture: str | None
    root: Descriptor
    descriptors: tuple[Descriptor, ...]


def is_sif(head: bytes) -> bool:
    """Tell whether a file that begins with ``head`` is a SIF."""
    return head[32:42] == _MAGIC


def read_sif(file: BinaryIO, path: Path) -> Sif:
    """Read and check the table of contents.

    Raises:
        CheckFailed: if the file is shorter than its table says, or the table is damaged.
        BadInput: if it holds no squashfs to start from.
    """
    size = file.seek(0, 2)
    file.seek(0)
    raw = file.read(_HEADER.size)
    if len(raw) < _HEADER.size:
        raise _cut(path, size, _HEADER.size)
    fields = _HEADER.unpack(raw)
    total, table = fields[8], fields[9]
    descriptors = tuple(_descriptors(file, path, table, total, size))
    for found in descriptors:
        if found.offset < 0 or found.size < 0 or found.offset + found.size > size:
            raise _cut(path, size, found.offset + found.size)
    root = next((d for d in descriptors if _is_root(d)), None)
    if root is None:
        raise BadInput(
            f"{path}: this SIF has no squashfs partition to start from (encrypted or OCI-SIF?)",
            fix="build it without encryption, by apptainer build",
        )
    code = root.extra[8:10].decode("ascii", "replace")
    return Sif(_ARCHITECTURES.get(code), root, descriptors)


def labels(file: BinaryIO, sif: Sif) -> bytes:
    """Return the JSON of the labels object, or ``{}``."""
    found = next((d for d in sif.descriptors if d.kind == _LABELS), None)
    if found is None:
        return b"{}"
    file.seek(found.offset)
    return file.read(min(found.size, 1 << 20))


def _descriptors(file: BinaryIO, path: Path, table: int, total: int, size: int) -> Iterator[Descriptor]:
    if not 0 < total <= _MOST or not 0 < table < size:
        raise CheckFailed(
            f"{path}: the SIF is damaged: its header makes no sense", fix="copy or build it again"
        )
    file.seek(table)
    for _ in range(total):
        raw = file.read(_DESCRIPTOR.size)
        if len(raw) < _DESCRIPTOR.size:
            raise _cut(path, size, table + total * _DESCRIPTOR.size)
        kind, used, _, _, _, offset, length, *_, name, extra = _DESCRIPTOR.unpack(raw)
        if used:
            yield Descriptor(kind, offset, length, name.rstrip(b"\0").decode("utf-8", "replace"), extra)


def _is_root(found: Descriptor) -> bool:
    if found.kind != _PARTITION:
        return False
    file_system, part = struct.unpack_from("<ii", found.extra)
    return bool(file_system == _SQUASHFS and part == _PRIMARY)


def _cut(path: Path, size: int, wanted: int) -> CheckFailed:
    return CheckFailed(
        f"{path}: the SIF is cut short: it has {size} bytes and needs at least {wanted}",
        fix="copy or build it again",
    )
