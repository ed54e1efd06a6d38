"""Check a SIF before it is trusted: its bytes, its signatures, and its contents against its lock."""

from pathlib import Path
from typing import BinaryIO

import msgspec

from toolkit.errors import BadInput, CheckFailed
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
from toolkit.image.trust.signing import Checked, coverage_gap, is_signed, signatures
from toolkit.model.job import ImageCheck
from toolkit.model.lock import Lock, encode_lock
from toolkit.model.progress import Tell
from toolkit.model.signature import SignatureState
from toolkit.model.verified import Check, CheckName, Verified
from toolkit.run.gpg import is_installed, verifier

LOCK_PATH = "/opt/toolkit/lock.json"
"""The path of the lock in an image that toolkit built."""

_NO_LOCK = f"the image has no {LOCK_PATH}"
_EARLIER_LOCK = f"an earlier release of toolkit wrote {LOCK_PATH}; build the image again to compare it"

NO_SIGNATURE = "the SIF has no signature"
"""The message about a file without a signature."""

_UNPACKED = 64 << 30
"""Bytes that are unpacked for the comparison at most; every file once or twice."""

_INSIDE: tuple[CheckName, ...] = ("lock", "files", "packages", "wheels", "versions")

WORDS: dict[SignatureState, str] = {
    "bad": "the signature by {} does not match: the signed text was changed later",
    "expired-key": "signed by {}, whose key has expired",
    "expired": "signed by {}, but the signature has expired",
    "revoked": "signed by {}, whose key was revoked",
    "unknown-key": "signed with the key {}, which is not among your trusted keys",
    "unreadable": "gpg cannot read the signature (damaged, or not PGP)",
}
"""The meaning of each state of a signature; ``{}`` is the signer."""


def verify(sif: Path, *, keyring: Path | None, lock: Lock | None, unsigned: bool, tell: Tell) -> Verified:
    """Make every possible check, and return the results; nothing is started.

    ``keyring`` holds the trusted keys, in place of the user's own; ``lock`` is compared with the image's own
    lock. ``unsigned`` accepts a file without a signature, or with one by an unknown key, which is no worse.

    Raises:
        Damaged: if nothing in the file can be read.
        BadInput: if there is no such file, it is not a SIF, or its checksum file has no checksum of it.
    """
    check_given(sif)
    tell.step(f"Reading {sif.name} for its checksum")
    digest = hash_file(sif)
    checks = [_digest(sif, digest)]
    with sif.open("rb") as file:
        tell.step("Checking its signatures")
        found = _signatures(file, sif, keyring)
        unknown = _missing_keys(file, sif, found)
        checks.append(_judge_signatures(found, _uncovered(file, sif, found)))
        if unsigned and (unknown or not found):
            checks[-1] = msgspec.structs.replace(checks[-1], outcome="not-checked")
        if checks[0].outcome == "failed" or any(map(_is_wrong, found)):
            checks += [_not_checked(name, "the file has changed since it was made") for name in _INSIDE]
        else:
            tell.step("Comparing the contents with the lock")
            checks += _inside(file, sif, lock)
    signers = tuple(sorted({one.signature.fingerprint for one in found if one.holds}))
    return Verified(path=str(sif), sha256=digest, signers=signers, unknown_keys=unknown, checks=tuple(checks))


def before_launch(sif: Path, keyring: Path | None) -> ImageCheck:
    """Check the signatures of a SIF before it starts; ``keyring`` requires a signature by a key in it.

    Without ``keyring``, an unsigned file may run. A file signed by an unknown key may also run if its bytes
    match the signature; the record says so.

    Raises:
        CheckFailed: if a signature is wrong, or a required signature is missing.
        Missing: if gpg fails to check, or a key is required and gpg is not installed.
    """
    if keyring is None and not is_signed(sif):
        return ImageCheck(signature="none")
    if keyring is None and not is_installed():
        return ImageCheck(signature="no-gpg")
    with sif.open("rb") as file:
        found = _signatures(file, sif, keyring)
        check = _judge_signatures(found, _uncovered(file, sif, found))
        unknown = _missing_keys(file, sif, found)
    signers = tuple(sorted({one.signature.fingerprint for one in found if one.holds}))
    if check.outcome == "ok":
        return ImageCheck(signature="good", signers=signers)
    if keyring is None and unknown:
        return ImageCheck(signature="unknown-key", signers=unknown)
    raise CheckFailed(f"{sif}: {check.told}", fix=_way_out(found, keyring), detail=check.detail)


def _way_out(found: tuple[Checked, ...], keyring: Path | None) -> str:
    """Return what to do about a file that may not run.

    Skipping the check is only suggested if every byte matches and no key is required.
    """
    if keyring is None and found and not any(map(_is_wrong, found)):
        states = {one.signature.state for one in found if not one.holds}
        if states and states <= {"expired", "expired-key", "unreadable"}:
            return (
                "ask the signer for a new signature; `--no-verify` skips the check, and the job record says "
                "so"
            )
    return "use an image with a valid signature, and import the signer's key"


def _digest(sif: Path, digest: str) -> Check:
    noted = digest_file(sif)
    if not noted.is_file():
        return _not_checked("digest", f"sha256:{digest}; not compared, because {noted.name} does not exist")
    wanted = noted_digest(sif, digest)
    if wanted == digest:
        return Check(name="digest", outcome="ok", told=f"sha256:{digest}, as {noted.name} says")
    return Check(
        name="digest", outcome="failed", told=f"sha256:{digest}, and {noted.name} says {wanted[:64]}"
    )


def _signatures(file: BinaryIO, sif: Path, keyring: Path | None) -> tuple[Checked, ...]:
    with verifier(keyring) as keys:
        return tuple(signatures(file, sif, keys))


def _uncovered(file: BinaryIO, sif: Path, found: tuple[Checked, ...]) -> str:
    """Return the parts that no valid signature covers; empty if every part is covered."""
    try:
        return coverage_gap(file, sif, {one.group for one in found if one.holds})
    except CheckFailed as error:
        return error.message.removeprefix(f"{sif}: ")


def _judge_signatures(found: tuple[Checked, ...], left: str) -> Check:
    """Judge all signatures: none may be wrong, and valid signatures must cover the whole file."""
    if not found:
        return Check(name="signature", outcome="failed", told=NO_SIGNATURE)
    lines = [_describe_signature(one) for one in found if not one.holds]
    wrong = [
        line for one, line in zip((o for o in found if not o.holds), lines, strict=True) if _is_wrong(one)
    ]
    if wrong or left:
        first = (wrong or lines or [left])[0]
        return Check(
            name="signature", outcome="failed", told=first, detail=tuple(lines) if len(lines) > 1 else ()
        )
    signers = ", ".join(sorted({one.signature.signer for one in found if one.holds}))
    return Check(name="signature", outcome="ok", told=f"signed by {signers}", detail=tuple(lines))


def _missing_keys(file: BinaryIO, sif: Path, found: tuple[Checked, ...]) -> tuple[str, ...]:
    """Return the missing keys, if they are the only problem: every byte matches the signature."""
    if any(one.differences or one.signature.state != "unknown-key" for one in found):
        return ()
    if coverage_gap(file, sif, {one.group for one in found}):
        return ()
    return tuple(sorted({one.signature.fingerprint for one in found}))


def _is_wrong(one: Checked) -> bool:
    """Return whether a signature contradicts the file; other signatures only fail to confirm it."""
    return one.signature.state == "bad" or bool(one.differences)


def _describe_signature(one: Checked) -> str:
    if one.differences:
        more = f", and {len(one.differences) - 1} more" if len(one.differences) > 1 else ""
        return f"{one.differences[0]}{more} (signed by {one.signature.signer})"
    return WORDS[one.signature.state].format(one.signature.signer)


def _inside(file: BinaryIO, sif: Path, given: Lock | None) -> list[Check]:
    root = read_sif(file, sif)
    budget = Budget(str(sif), size=_UNPACKED)
    tree = SquashTree(file, root.root.offset, str(sif), budget)
    own, why = _own_lock(tree)
    lock, manifest = given or own, read_manifest(tree)
    hashes = audit.hash_files(tree, manifest) if lock or manifest else {}
    written = (
        audit.contents(manifest, hashes, MANIFEST_PATH)
        if manifest
        else _not_checked("files", f"the image has no {MANIFEST_PATH}")
    )
    if lock is None:
        return [
            _lock(own, given, why),
            written,
            *(_not_checked(name, "toolkit found no lock to compare the image with") for name in _INSIDE[2:]),
        ]
    facts = describe(tree, sif, "sif", architecture=root.architecture, digest=None, budget=budget)
    return [
        _lock(own, given, why),
        written,
        audit.packages(tree, lock),
        audit.wheels(tree, lock, manifest, hashes),
        audit.versions(facts, lock),
    ]


def _own_lock(tree: FileTree) -> tuple[Lock | None, str]:
    """Return the lock in an image; or ``None`` and why it cannot be read."""
    text = files.read(tree, LOCK_PATH, MOST_LOCK)
    if text is None:
        return None, _NO_LOCK
    try:
        return decode_lock(text, LOCK_PATH), ""
    except EarlierLock:
        return None, _EARLIER_LOCK
    except BadInput as error:
        return None, error.message


def _lock(own: Lock | None, given: Lock | None, why: str) -> Check:
    if own is None:
        absent = why in (_NO_LOCK, _EARLIER_LOCK) and given is None
        return Check(name="lock", outcome="not-checked" if absent else "failed", told=why)
    if given is not None and encode_lock(given) != encode_lock(own):
        return Check(
            name="lock", outcome="failed", told=f"the image was built from another lock of {own.recipe}"
        )
    told = f"built from the lock of {own.recipe}"
    return Check(name="lock", outcome="ok", told=f"{told}, which is the given lock" if given else told)


def _not_checked(name: CheckName, told: str) -> Check:
    return Check(name=name, outcome="not-checked", told=told)
