"""Write the header and the metadata of a SIF to a file that already contains the SIF's squashfs.

Source: apptainer/sif:pkg/sif/create.go. The header and the descriptor table of the SIF do not depend on the
host, the current time or random numbers, so the same content always gives the same bytes.
"""

import hashlib
import struct
import uuid
from collections.abc import Sequence
from pathlib import Path

from toolkit.errors import BadInput
from toolkit.image.files.sif.sifobjects import (
    DEFINITION,
    JSON,
    MAGIC,
    PARTITION,
    PRIMARY,
    SQUASHFS,
    Object,
    SifDescriptor,
    SifHeader,
)

_LAUNCH = b"#!/usr/bin/env run-singularity\n"
_VERSION = b"01\0"
_TABLE = 4096
_SLOTS = 48
_SLOT_SIZE = 585
_GROUP = 0xF0000001
_ALIGNMENT = 4096
_CHUNK = 1 << 20
_NAMESPACE = uuid.UUID("7d7ba3b9-4e0f-5c50-9d0c-6f1c4a8a1f5e")
_ARCHITECTURES = {
    "386": b"01\0",
    "amd64": b"02\0",
    "arm": b"03\0",
    "arm64": b"04\0",
    "ppc64": b"05\0",
    "ppc64le": b"06\0",
    "s390x": b"11\0",
    "riscv64": b"12\0",
}


def metadata_objects(definition: str, metadata: bytes, config: bytes) -> tuple[Object, ...]:
    """Return the SIF objects that precede the squashfs, in the order in which Apptainer writes them."""
    return (
        Object(DEFINITION, definition.encode()),
        Object(JSON, metadata, "inspect-metadata.json"),
        Object(JSON, config, "oci-config.json"),
    )


def partition_offset(objects: Sequence[Object]) -> int:
    """Return the file offset of the squashfs, which follows ``objects``."""
    end = _TABLE + _SLOTS * _SLOT_SIZE + sum(len(thing.content) for thing in objects)
    return -(-end // _ALIGNMENT) * _ALIGNMENT


def write_head(path: Path, objects: Sequence[Object], architecture: str, epoch: int) -> None:
    """Write the header, the descriptor table and ``objects`` to the start of a SIF.

    The file must already contain the squashfs, at the offset that :func:`partition_offset` returns.

    ``architecture`` is Go's name of the architecture, such as ``amd64``. ``epoch`` is the creation time of
    the SIF and of all its objects, in Unix seconds.

    Raises:
        BadInput: if the SIF format has no number for the architecture.
    """
    if architecture not in _ARCHITECTURES:
        known = ", ".join(_ARCHITECTURES)
        raise BadInput(
            f"toolkit cannot convert an image for {architecture or 'an unknown architecture'} to a SIF; "
            f"the SIF format supports: {known}"
        )
    code = _ARCHITECTURES[architecture]
    start, size = partition_offset(objects), path.stat().st_size
    system = Object(PARTITION, b"", extra=struct.pack("<ii3s", SQUASHFS, PRIMARY, code))
    entries: list[SifDescriptor] = []
    at = _TABLE + _SLOTS * _SLOT_SIZE
    for thing in objects:
        entries.append(_entry(thing, len(entries) + 1, at, len(thing.content), len(thing.content), epoch))
        at += len(thing.content)
    entries.append(_entry(system, len(entries) + 1, start, size - start, size - at, epoch))
    table = b"".join(entry.pack() for entry in entries).ljust(_SLOTS * _SLOT_SIZE, b"\0")
    body = (table + b"".join(thing.content for thing in objects)).ljust(start - _TABLE, b"\0")
    with path.open("r+b") as file:
        whole = hashlib.sha256(body)
        file.seek(start)
        while chunk := file.read(_CHUNK):
            whole.update(chunk)
        header = SifHeader(
            launch=_LAUNCH.ljust(32, b"\0"),
            magic=MAGIC,
            version=_VERSION,
            architecture=code,
            uuid=uuid.uuid5(_NAMESPACE, whole.hexdigest()).bytes,
            created=epoch,
            modified=epoch,
            free=_SLOTS - len(entries),
            total=_SLOTS,
            table=_TABLE,
            table_size=_SLOTS * _SLOT_SIZE,
            data=_TABLE + _SLOTS * _SLOT_SIZE,
            data_size=size - _TABLE - _SLOTS * _SLOT_SIZE,
        )
        file.seek(0)
        file.write(header.pack().ljust(_TABLE, b"\0") + body)


def _entry(item: Object, number: int, offset: int, size: int, padded_size: int, epoch: int) -> SifDescriptor:
    return SifDescriptor(
        kind=item.kind,
        used=True,
        number=number,
        group_field=_GROUP,
        link_field=0,
        offset=offset,
        size=size,
        padded=padded_size,
        created=epoch,
        modified=epoch,
        uid=0,
        gid=0,
        name=item.name.encode().ljust(128, b"\0"),
        extra=item.extra.ljust(384, b"\0"),
    )
