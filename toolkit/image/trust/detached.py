"""Write and check PGP signatures of bundles and locks.

A signature is a clear-signed file with the SHA-256 of the bundle or lock. The signed text has the format of
``sha256sum``, so that users can check a file with gpg and sha256sum, without toolkit.
"""

import os
import re
from pathlib import Path

from toolkit.data import shipped_folder
from toolkit.errors import BadInput, CheckFailed, Missing
from toolkit.files import hash_file, read_given, require_own, write_whole
from toolkit.image.locks.lock import lock_path
from toolkit.image.trust.judgement import WORDS
from toolkit.image.trust.signing import SignedFile
from toolkit.model.signature import FileSignature
from toolkit.run.gpg import clearsign, signing_key, verifier

_BEGINS = "-----BEGIN PGP SIGNED MESSAGE-----"
_MOST = 1 << 20
"""Maximum size of a signature file in bytes; a usual signature has about 300 bytes."""
_LINE = re.compile(rb"([0-9a-f]{64})  [^\n]+\n?")


def signature_file(path: Path) -> Path:
    """Return the path of the signature of a bundle or a lock: the path of the file with ``.asc`` appended."""
    return path.with_name(f"{path.name}.asc")


def sign_file(path: Path, key: str) -> SignedFile:
    """Sign the SHA-256 of a file with gpg, and write the signature to ``NAME.asc`` beside the file.

    toolkit replaces an old signature. ``key`` is a fingerprint, the end of a fingerprint, or an e-mail
    address.

    Raises:
        BadInput: if ``NAME.asc`` exists and is not a signature, or several keys match ``key``.
        CheckFailed: if gpg fails to sign, or toolkit cannot write the signature.
        Missing: if gpg does not have the key.
    """
    target = signature_file(path)
    require_own(target, _BEGINS, f"rename {target.name}, because toolkit writes the signature to this file")
    maker = signing_key(key)
    digest = hash_file(path)
    message = clearsign(maker, f"{digest}  {path.name}\n".encode())
    try:
        write_whole(target, message)
    except OSError as error:
        raise CheckFailed(
            f"{target} cannot be written: {error.strerror}",
            fix=f"copy {path.name} to your own folder, and sign the copy",
        ) from error
    return SignedFile(
        path=str(path),
        bytes=path.stat().st_size,
        sha256=digest,
        fingerprint=maker.fingerprint,
        user=maker.user,
    )


def signature_of(path: Path, keyring: Path | None) -> FileSignature:
    """Return the state of a file's signature (such as ``good``), the signer, and the SHA-256 in the
    signature. If the file has no signature, the state is ``none``.

    Args:
        path: the bundle or lock. This function reads only the signature file, not the file ``path`` itself.
            :func:`require_signed` compares the SHA-256.
        keyring: a file of trusted public keys, which replaces the user's keyring. If it is given, the file
            needs a signature.

    Raises:
        CheckFailed: if the signature is wrong or has expired, or its key has expired or was revoked. If
            ``keyring`` is given, a missing signature or a key outside ``keyring`` also raises this error.
        BadInput: if the signature file is unreadable, or ``keyring`` has no keys.
        Missing: if ``keyring`` is given and gpg is not installed.
    """
    file = signature_file(path)
    if not os.path.lexists(file):
        if keyring is not None:
            raise CheckFailed(
                f"{path}: the file has no signature, but `--verify-key` requires a signature",
                fix=f"get {file.name} from the source of {path.name}",
            )
        return FileSignature()
    message = read_given(file, limit=_MOST)
    try:
        with verifier(keyring) as keys:
            signature = keys.check(message)
    except Missing:
        if keyring is not None:
            raise
        return FileSignature(state="no-gpg")
    text = _LINE.fullmatch(signature.text.replace(b"\r\n", b"\n"))
    wrong = signature.state != "good" and (signature.state != "unknown-key" or keyring is not None)
    if wrong or text is None:
        why = WORDS[signature.state].format(signature.signer) if wrong else "the signed text is not a SHA-256"
        raise CheckFailed(
            f"{file}: {why}",
            fix=f"get {path.name} and its signature again from their source",
        )
    return FileSignature(
        state="good" if signature.state == "good" else "unknown-key",
        user=signature.user,
        fingerprint=signature.fingerprint,
        sha256=text[1].decode(),
    )


def require_signed(path: Path, signature: FileSignature, digest: str) -> None:
    """Check that ``digest``, the SHA-256 of a file, is the SHA-256 in the signature.

    A signature without a SHA-256, such as a signature in the state ``none``, passes.

    Raises:
        CheckFailed: if the SHA-256 in the signature differs from ``digest``.
    """
    if signature.sha256 and signature.sha256 != digest:
        raise CheckFailed(
            f"{path}: the file has changed since it was signed: its SHA-256 is {digest[:12]}…, but "
            f"{signature_file(path).name} has {signature.sha256[:12]}…",
            fix=f"get {path.name} and its signature again from their source",
        )


def lock_signature(recipe: str, keyring: Path | None) -> FileSignature | None:
    """Return the signature of a recipe's lock.

    If ``keyring`` is None, return None for a missing lock, and for a lock that toolkit ships.

    Args:
        recipe: the name or path of the recipe.
        keyring: a file of trusted public keys; if given, every lock needs a signature.

    Raises:
        BadInput: if ``keyring`` is given and the recipe has no lock.
        CheckFailed: if the lock has changed since it was signed.
        CheckFailed, BadInput, Missing: as for :func:`signature_of`.
    """
    file = lock_path(recipe)
    if keyring is None and (not file.is_file() or file.parent == shipped_folder("recipes")):
        return None
    if not file.is_file():
        raise BadInput(f"{recipe} has no lock, but --verify-key requires a signed lock")
    signature = signature_of(file, keyring)
    require_signed(file, signature, hash_file(file))
    return signature
