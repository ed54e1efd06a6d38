"""Verify a SIF: check its checksum and its signatures, and compare its contents with its lock.

``signing.py`` checks signatures, and ``judgement.py`` decides whether an image may start.
"""

from pathlib import Path
from typing import BinaryIO

import msgspec

from toolkit.errors import BadInput
from toolkit.files import check_given, hash_file
from toolkit.image.files import tree as files
from toolkit.image.files.bounded import Budget
from toolkit.image.files.digest import digest_file, noted_digest
from toolkit.image.files.sif.siffile import read_sif
from toolkit.image.files.sif.squash import SquashTree
from toolkit.image.files.tree import FileTree
from toolkit.image.locks.lock import MOST_LOCK, EarlierLock, decode_lock
from toolkit.image.software.describe import describe
from toolkit.image.software.manifest import MANIFEST_PATH, read_manifest
from toolkit.image.trust import audit
from toolkit.image.trust.judgement import is_wrong, judge_signatures, missing_keys, read_signatures, uncovered
from toolkit.model.lock import Lock, encode_lock
from toolkit.model.progress import Tell
from toolkit.model.verified import Check, CheckName, Verified

LOCK_PATH = "/opt/toolkit/lock.json"
"""The path of the lock in an image that toolkit built."""

_NO_LOCK = f"the image has no {LOCK_PATH}"
_EARLIER_LOCK = (
    f"an earlier release of toolkit wrote {LOCK_PATH}, and this release cannot read that format; build the "
    f"image again"
)

_UNPACKED = 64 << 30
"""Maximum number of bytes that toolkit unpacks to compare an image with its lock. If toolkit unpacks a file
twice, the file counts twice.
"""

_INSIDE: tuple[CheckName, ...] = ("lock", "files", "packages", "wheels", "versions")


def verify(sif: Path, *, keyring: Path | None, lock: Lock | None, unsigned: bool, tell: Tell) -> Verified:
    """Run all checks of a SIF without starting it, and return the results.

    ``keyring`` is a file of trusted keys, which replaces the user's keyring. If ``lock`` is given, toolkit
    compares both the image and the image's own lock with ``lock``. If ``lock`` is None, toolkit compares the
    image with its own lock. If ``unsigned`` is true, a SIF passes without a signature, or with a signature
    by an unknown key.

    Raises:
        Damaged: if the file is too damaged to read.
        BadInput: if the file is missing or is not a SIF, or its checksum file has no line for the SIF.
    """
    check_given(sif)
    tell.step(f"Computing the SHA-256 of {sif.name}")
    digest = hash_file(sif)
    checks = [_digest(sif, digest)]
    with sif.open("rb") as file:
        tell.step(f"Checking the signatures of {sif.name}")
        found = read_signatures(file, sif, keyring)
        unknown = missing_keys(file, sif, found)
        checks.append(judge_signatures(found, uncovered(file, sif, found)))
        if unsigned and (unknown or not found):
            checks[-1] = msgspec.structs.replace(checks[-1], outcome="not-checked")
        if checks[0].outcome == "failed" or any(map(is_wrong, found)):
            checks += [
                _not_checked(name, "the file has changed since it was built or signed") for name in _INSIDE
            ]
        else:
            tell.step("Comparing the contents with the lock")
            checks += _inside(file, sif, lock)
    signers = tuple(sorted({checked.signature.fingerprint for checked in found if checked.holds}))
    return Verified(path=str(sif), sha256=digest, signers=signers, unknown_keys=unknown, checks=tuple(checks))


def _digest(sif: Path, digest: str) -> Check:
    noted = digest_file(sif)
    if not noted.is_file():
        return _not_checked("digest", f"sha256:{digest}; not compared, because {noted.name} does not exist")
    wanted = noted_digest(sif, digest)
    if wanted == digest:
        return Check(name="digest", outcome="ok", told=f"sha256:{digest}, as {noted.name} says")
    return Check(
        name="digest", outcome="failed", told=f"sha256:{digest}, but {noted.name} says {wanted[:64]}"
    )


def _inside(file: BinaryIO, sif: Path, expected_lock: Lock | None) -> list[Check]:
    root = read_sif(file, sif)
    budget = Budget(str(sif), size=_UNPACKED)
    tree = SquashTree(file, root.root.offset, str(sif), budget)
    own, why = _own_lock(tree)
    lock, manifest = expected_lock or own, read_manifest(tree)
    hashes = audit.hash_files(tree, manifest) if lock or manifest else {}
    written = (
        audit.contents(manifest, hashes, MANIFEST_PATH)
        if manifest
        else _not_checked("files", f"the image has no {MANIFEST_PATH}")
    )
    if lock is None:
        return [
            _lock(own, expected_lock, why),
            written,
            *(_not_checked(name, "toolkit found no lock to compare the image with") for name in _INSIDE[2:]),
        ]
    facts = describe(tree, sif, "sif", architecture=root.architecture, digest=None, budget=budget)
    return [
        _lock(own, expected_lock, why),
        written,
        audit.packages(tree, lock),
        audit.wheels(tree, lock, manifest, hashes),
        audit.versions(facts, lock),
    ]


def _own_lock(tree: FileTree) -> tuple[Lock | None, str]:
    """Return the image's own lock and an empty text. Without a valid lock, return None and the reason."""
    text = files.read(tree, LOCK_PATH, MOST_LOCK)
    if text is None:
        return None, _NO_LOCK
    try:
        return decode_lock(text, LOCK_PATH), ""
    except EarlierLock:
        return None, _EARLIER_LOCK
    except BadInput as error:
        return None, error.message


def _lock(own_lock: Lock | None, expected_lock: Lock | None, reason: str) -> Check:
    if own_lock is None:
        absent = reason in (_NO_LOCK, _EARLIER_LOCK) and expected_lock is None
        return Check(name="lock", outcome="not-checked" if absent else "failed", told=reason)
    if expected_lock is not None and encode_lock(expected_lock) != encode_lock(own_lock):
        return Check(
            name="lock",
            outcome="failed",
            told=f"the lock of {own_lock.recipe} in the image differs from the given lock",
        )
    detail = f"built from the lock of {own_lock.recipe}"
    return Check(
        name="lock", outcome="ok", told=f"{detail}, which is the given lock" if expected_lock else detail
    )


def _not_checked(name: CheckName, detail: str) -> Check:
    return Check(name=name, outcome="not-checked", told=detail)
