"""Write and check the text that a SIF signature signs: the digests of the header, descriptors and objects.

The text has Apptainer's format (apptainer/sif: pkg/integrity), so toolkit and Apptainer can verify each
other's signatures. The text covers the sizes, types, names and contents of objects, but neither their offsets
in the file nor their time stamps.
"""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec

from toolkit.decoding import DECODE_ERRORS
from toolkit.errors import CheckFailed
from toolkit.image.files.sif.sifobjects import SIGNATURE, SifDescriptor, Table, pieces

_ALGORITHMS = frozenset({"sha224", "sha256", "sha384", "sha512", "sha512_224", "sha512_256"})
_MOST = 1024


class _Header(msgspec.Struct, frozen=True):
    digest: str


class _Object(msgspec.Struct, frozen=True, rename="camel"):
    relative_id: int
    descriptor_digest: str
    object_digest: str


class Metadata(msgspec.Struct, frozen=True):
    """The signed text for one group of objects.

    An object's ``relative_id`` is the object's number minus the lowest object number in the group.
    """

    version: int
    header: _Header
    objects: tuple[_Object, ...]


def metadata(file: BinaryIO, table: Table, group: int) -> bytes:
    """Return the text to sign, for a signature that covers all objects of a group."""
    entries = table.in_group(group)
    first = entries[0].number
    objects = tuple(
        _Object(e.number - first, _sha256(e.fixed(first)), _digest(file, e, "sha256")) for e in entries
    )
    return msgspec.json.encode(Metadata(1, _Header(_sha256(table.header.fixed)), objects))


def signed_groups(table: Table, path: Path) -> tuple[int, ...]:
    """Return the numbers of the groups that signatures must cover.

    Signatures must cover every group, except a group that contains only signatures.

    Raises:
        CheckFailed: if an object other than a signature is in no group. No signature can cover this object.
    """
    for entry in table.used:
        if not entry.group and entry.kind != SIGNATURE:
            raise CheckFailed(
                f"{path}: no signature can cover {entry.label}, because this object is in no group",
                fix="build the image again",
            )
    return tuple(sorted({entry.group for entry in table.used if entry.kind != SIGNATURE}))


def differences(text: bytes, file: BinaryIO, table: Table, group: int) -> Iterator[str]:
    """Yield a message for each difference between the objects of a group and the signed text.

    A signed text in an unknown format counts as a difference, because an attacker may have written the text.
    """
    try:
        metadata = msgspec.json.decode(text, type=Metadata)
    except DECODE_ERRORS as error:
        yield f"the signed text is not a list of digests: {error}"
        return
    if metadata.version != 1 or len(metadata.objects) > _MOST:
        yield (
            f"the signed text has version {metadata.version} and {len(metadata.objects)} objects; toolkit "
            f"reads version 1 with at most {_MOST} objects"
        )
        return
    entries = table.in_group(group)
    first = entries[0].number if entries else 0
    listed = {first + item.relative_id: item for item in metadata.objects}
    if len(listed) != len(metadata.objects):
        yield "the signed text lists an object twice"
        return
    if not _has_digest_of(metadata.header.digest, table.header.fixed):
        yield "the SIF header differs from the signed header"
    for entry in entries:
        if entry.number not in listed:
            yield f"{entry.label} was added after signing"
        else:
            yield from _changes(file, entry, first, listed.pop(entry.number))
    for number in sorted(listed):
        yield f"object {number} was signed but is missing"


def _changes(file: BinaryIO, entry: SifDescriptor, first_number: int, item: _Object) -> Iterator[str]:
    if not _has_digest_of(item.descriptor_digest, entry.fixed(first_number)):
        yield f"{entry.label}: its descriptor differs from the signed descriptor"
    algorithm = item.object_digest.partition(":")[0]
    if algorithm not in _ALGORITHMS or _digest(file, entry, algorithm) != item.object_digest.lower():
        yield f"{entry.label}: its content has changed since it was signed"


def _has_digest_of(digest: str, content: bytes) -> bool:
    algorithm = digest.partition(":")[0]
    if algorithm not in _ALGORITHMS:
        return False
    actual = hashlib.new(algorithm, content).hexdigest()
    return f"{algorithm}:{actual}" == digest.lower()


def _sha256(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def _digest(file: BinaryIO, entry: SifDescriptor, algorithm: str) -> str:
    state = hashlib.new(algorithm)
    for chunk in pieces(file, entry):
        state.update(chunk)
    return f"{algorithm}:{state.hexdigest()}"
