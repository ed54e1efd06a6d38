"""Sign a SIF, and check the signatures in a SIF."""

import contextlib
import os
import shutil
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

import msgspec

from toolkit.errors import CheckFailed
from toolkit.files import hash_file, open_given
from toolkit.folders import behind_links
from toolkit.image.files import workspace
from toolkit.image.files.digest import check_digest, publish
from toolkit.image.files.filelock import hold_lock, identity
from toolkit.image.files.sif.sifobjects import (
    SIGNATURE,
    Object,
    SifDescriptor,
    Table,
    add,
    content,
    read_table,
)
from toolkit.image.trust.integrity import differences, metadata, signed_groups
from toolkit.model.progress import Tell
from toolkit.model.signature import Signature
from toolkit.run.gpg import SigningKey, Verifier, clearsign, signing_key, verifier

_SHA256_SIGNED = (1).to_bytes(4, "little")
_LONGEST = 1 << 20
"""Maximum size of a SIF signature in bytes. For example, a signature of a thousand objects has 250 kB."""


class SignedFile(msgspec.Struct, frozen=True, kw_only=True):
    """The result of signing a file: the signer, and the file's size and SHA-256 after signing."""

    schema: str = "toolkit.signed/1"
    path: str
    bytes: int
    sha256: str
    fingerprint: str
    user: str


@dataclass(frozen=True, slots=True)
class CheckedSignature:
    """The result of the check of one signature.

    ``group`` is the number of the group of SIF objects that the signature covers. ``differences`` are
    messages about differences between the SIF and the signed text.
    """

    signature: Signature
    group: int
    differences: tuple[str, ...]

    @property
    def holds(self) -> bool:
        return self.signature.state == "good" and not self.differences


def sign(sif: Path, key: str, tell: Tell, *, extra: tuple[Object, ...] = ()) -> SignedFile:
    """Add the objects ``extra`` to a SIF, and sign all objects of the SIF with the user's key ``key``.

    Existing signatures stay valid, because toolkit puts the added objects into a separate group. If
    ``sif`` is a symbolic link, toolkit signs the file to which the link points.

    toolkit signs a copy of the SIF, checks the new signature, and renames the copy to the SIF's name. Other
    processes therefore never see an incomplete SIF, and running containers continue to use the old file. If
    several processes sign the same SIF, a lock makes them sign one after another.

    Raises:
        CheckFailed: if the SIF is damaged, differs from its checksum, or gpg fails to sign.
        BadInput: if the SIF does not exist, or several keys match ``key``.
        Missing: if gpg is not installed, or does not have the key.
    """
    with open_given(sif) as file:
        signed_groups(read_table(file, sif), sif)  # report an invalid SIF before gpg asks for a passphrase
    real, maker = behind_links(sif), signing_key(key)

    def waiting() -> None:
        tell.step(f"{sif.name} is being signed by another process; toolkit waits for this process")

    with hold_lock(real, waiting):
        digest = _replace_by_signed(sif, real, maker, tell, extra)
    return SignedFile(
        path=str(sif),
        bytes=sif.stat().st_size,
        sha256=digest,
        fingerprint=maker.fingerprint,
        user=maker.user,
    )


def _replace_by_signed(
    sif: Path, real_path: Path, maker: SigningKey, tell: Tell, extra: tuple[Object, ...]
) -> str:
    """Replace ``real_path``, the file to which ``sif`` points, by a signed copy; return the copy's SHA-256.

    The caller must hold the lock of ``real_path``, so that no other process adds a signature to the SIF while
    this function copies and signs the SIF.
    """
    check_digest(sif)
    if sif.is_symlink():
        check_digest(real_path)
    before_copy = identity(real_path)
    with sif.open("rb") as file:
        signed_groups(read_table(file, sif), sif)
    workspace.require_space(
        real_path.parent,
        sif.stat().st_size,
        "the signed copy",
        "delete files on that disk: until signing ends, the disk holds the SIF and its signed copy",
    )
    with _report_untouched(real_path), workspace.beside(real_path) as part:
        tell.step(f"Signing {sif.name} as {maker.user}")
        shutil.copyfile(sif, part)
        with part.open("r+b") as file:
            add(file, sif, *_in_separate_group(read_table(file, sif), extra))
            before = {entry.number for entry in read_table(file, sif).used}
            add(file, sif, *_signatures(file, sif, maker))
            os.fsync(file.fileno())
        with part.open("rb") as file, verifier(None) as keys:
            signatures = [*_signatures_but(file, read_table(file, sif), keys, before)]
        if not signatures or not all(checked.holds for checked in signatures):
            raise CheckFailed(f"{sif}: the new signature is not valid", fix="sign the SIF again")
        digest = hash_file(part)
        shutil.copymode(sif, part)
        if identity(real_path) != before_copy:
            raise CheckFailed(
                f"{sif}: another program changed the SIF while toolkit signed it", fix="sign the SIF again"
            )
        # Lock the new file, too, because the lock belongs to the file and not to its name.
        # A process that opens the new file waits until toolkit has written the checksum.
        with hold_lock(part, lambda: None):
            publish(part, sif, digest)
    return digest


@contextlib.contextmanager
def _report_untouched(sif: Path) -> Iterator[None]:
    """Convert a write error to an error whose message says that the SIF is unchanged."""
    try:
        yield
    except OSError as error:
        raise CheckFailed(
            f"{error.filename or sif.parent}: {error.strerror}",
            fix=f"{sif.name} is unchanged; delete files on its disk, or sign a copy in your own folder",
        ) from error


def is_signed(sif: Path) -> bool:
    """Return whether a SIF has a signature, valid or invalid."""
    with sif.open("rb") as file:
        return any(entry.kind == SIGNATURE for entry in read_table(file, sif).used)


def signatures(file: BinaryIO, path: Path, keys: Verifier) -> Iterator[CheckedSignature]:
    """Check each signature of a SIF with gpg, compare its signed text with the SIF, and yield the result."""
    yield from _signatures_but(file, read_table(file, path), keys, frozenset())


def coverage_gap(file: BinaryIO, path: Path, covered_groups: set[int]) -> str:
    """Return a message that names the first object group that no valid signature covers.

    ``covered_groups`` are the groups with a valid signature. If every group has one, return an empty text.
    """
    left = [group for group in signed_groups(read_table(file, path), path) if group not in covered_groups]
    return f"no valid signature covers group {left[0]} of the SIF's objects" if left else ""


def _in_separate_group(table: Table, extra: tuple[Object, ...]) -> tuple[Object, ...]:
    """Return the objects ``extra``; if the SIF has a signature, assign them to a new group.

    A signature covers all objects of a group, so adding an object to a signed group would make the signature
    invalid.
    """
    if not any(entry.kind == SIGNATURE for entry in table.used):
        return extra
    group = 1 + max(entry.group for entry in table.used)
    return tuple(replace(thing, group=group) for thing in extra)


def _signatures_but(
    file: BinaryIO, table: Table, keys: Verifier, numbers: Collection[int]
) -> Iterator[CheckedSignature]:
    """Check the signatures of a SIF, except the signatures whose object numbers are in ``numbers``."""
    for entry in table.used:
        if entry.kind == SIGNATURE and entry.number not in numbers:
            yield _check_signature(file, table, entry, keys)


def _signatures(file: BinaryIO, sif: Path, maker: SigningKey) -> Iterator[Object]:
    table = read_table(file, sif)
    for group in signed_groups(table, sif):
        yield Object(
            SIGNATURE,
            clearsign(maker, metadata(file, table, group)),
            group=0,
            signed_group=group,
            extra=_SHA256_SIGNED + bytes.fromhex(maker.fingerprint),
        )


def _check_signature(file: BinaryIO, table: Table, entry: SifDescriptor, keys: Verifier) -> CheckedSignature:
    group = entry.linked_group
    found = keys.check(content(file, entry, _LONGEST))
    if found.state in {"bad", "unreadable"}:
        return CheckedSignature(found, group, ())
    if not table.in_group(group):
        return CheckedSignature(
            found, group, ("the signature covers objects that the file does not contain",)
        )
    return CheckedSignature(found, group, tuple(differences(found.text, file, table, group)))
