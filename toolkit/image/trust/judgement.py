"""Decide whether the signatures of a SIF are valid, before a launch and for ``toolkit image verify``."""

from pathlib import Path
from typing import BinaryIO

from toolkit.errors import CheckFailed
from toolkit.image.trust.signing import CheckedSignature, coverage_gap, is_signed, signatures
from toolkit.model.job import ImageCheck
from toolkit.model.signature import SignatureState
from toolkit.model.verified import Check
from toolkit.run.gpg import is_installed, verifier

NO_SIGNATURE = "the SIF has no signature"
"""The message for a SIF without a signature."""

WORDS: dict[SignatureState, str] = {
    "bad": "the signature by {} does not match: the signed text was changed after signing",
    "expired-key": "signed by {}, whose key has expired",
    "expired": "signed by {}, but the signature has expired",
    "revoked": "signed by {}, whose key was revoked",
    "unknown-key": "signed with the key {}, which is not among your trusted keys",
    "unreadable": "gpg cannot read the signature (damaged, or not PGP)",
}
"""The message for each state of a signature except ``good``. The signer's name or key replaces ``{}``."""


def before_launch(sif: Path, keyring: Path | None) -> ImageCheck:
    """Check the signatures of a SIF before a launch, and return the result for the job record.

    If ``keyring`` is given, the SIF needs a signature by a key in this keyring. If ``keyring`` is None, a SIF
    may run without a signature, or with signatures by unknown keys if these signatures match the SIF. If the
    keys are unknown, the result contains their fingerprints. If ``keyring`` is None and gpg is not installed,
    toolkit does not check the signatures.

    Raises:
        CheckFailed: if a signature contradicts the SIF, valid signatures do not cover the whole SIF, or a
            required signature is missing.
        Missing: if gpg fails, or a signature is required and gpg is not installed.
    """
    if keyring is None and not is_signed(sif):
        return ImageCheck(signature="none")
    if keyring is None and not is_installed():
        return ImageCheck(signature="no-gpg")
    with sif.open("rb") as file:
        signatures = read_signatures(file, sif, keyring)
        check = judge_signatures(signatures, uncovered(file, sif, signatures))
        unknown = missing_keys(file, sif, signatures)
    signers = tuple(sorted({signature.signature.fingerprint for signature in signatures if signature.holds}))
    if check.outcome == "ok":
        return ImageCheck(signature="good", signers=signers)
    if keyring is None and unknown:
        return ImageCheck(signature="unknown-key", signers=unknown)
    raise CheckFailed(f"{sif}: {check.told}", fix=_way_out(signatures, keyring), detail=check.detail)


def _way_out(results: tuple[CheckedSignature, ...], keyring: Path | None) -> str:
    """Return the hint of the error message for a SIF that toolkit refuses to run.

    The hint suggests ``--no-verify`` only if ``keyring`` is None and each invalid signature is unreadable, is
    expired or has an expired key. The hint never suggests ``--no-verify`` if a signature contradicts the
    SIF.
    """
    if keyring is None and results and not any(map(is_wrong, results)):
        states = {signature.signature.state for signature in results if not signature.holds}
        if states and states <= {"expired", "expired-key", "unreadable"}:
            return (
                "ask the signer for a new signature; or skip the signature check with `--no-verify`, which "
                "toolkit notes in the job record"
            )
    return "use an image with a valid signature, and import the signer's key"


def read_signatures(file: BinaryIO, sif: Path, keyring: Path | None) -> tuple[CheckedSignature, ...]:
    with verifier(keyring) as keys:
        return tuple(signatures(file, sif, keys))


def uncovered(file: BinaryIO, sif: Path, results: tuple[CheckedSignature, ...]) -> str:
    """Return a message that names a part of the SIF that no valid signature covers, or an empty text."""
    try:
        return coverage_gap(file, sif, {signature.group for signature in results if signature.holds})
    except CheckFailed as error:
        return error.message.removeprefix(f"{sif}: ")


def judge_signatures(results: tuple[CheckedSignature, ...], gap: str) -> Check:
    """Return whether a SIF passes the signature check; ``results`` are its checked signatures.

    ``gap`` is the message from :func:`uncovered`. The SIF passes if it has a signature, no signature is wrong
    (see :func:`is_wrong`), and valid signatures cover the whole SIF.
    """
    if not results:
        return Check(name="signature", outcome="failed", told=NO_SIGNATURE)
    lines = [_describe_signature(signature) for signature in results if not signature.holds]
    wrong = [
        line
        for signature, line in zip((o for o in results if not o.holds), lines, strict=True)
        if is_wrong(signature)
    ]
    if wrong or gap:
        first = (wrong or lines or [gap])[0]
        return Check(
            name="signature", outcome="failed", told=first, detail=tuple(lines) if len(lines) > 1 else ()
        )
    signers = ", ".join(sorted({signature.signature.signer for signature in results if signature.holds}))
    return Check(name="signature", outcome="ok", told=f"signed by {signers}", detail=tuple(lines))


def missing_keys(file: BinaryIO, sif: Path, results: tuple[CheckedSignature, ...]) -> tuple[str, ...]:
    """Return the fingerprints of the unknown keys if unknown keys are the only problem of the signatures.

    The result is empty if a signature contradicts the SIF, if a signature has a state other than
    ``unknown-key``, or if a group of the SIF's objects has no signature.
    """
    if any(signature.differences or signature.signature.state != "unknown-key" for signature in results):
        return ()
    if coverage_gap(file, sif, {signature.group for signature in results}):
        return ()
    return tuple(sorted({signature.signature.fingerprint for signature in results}))


def is_wrong(result: CheckedSignature) -> bool:
    """Return whether a signature contradicts the SIF. An expired or unknown key is not a contradiction."""
    return result.signature.state == "bad" or bool(result.differences)


def _describe_signature(result: CheckedSignature) -> str:
    if result.differences:
        more = f", and {len(result.differences) - 1} more" if len(result.differences) > 1 else ""
        return f"{result.differences[0]}{more} (signed by {result.signature.signer})"
    return WORDS[result.signature.state].format(result.signature.signer)
