"""The validity of a signature of an image, and its signer."""

from typing import Literal

import msgspec

SignatureState = Literal["good", "bad", "expired-key", "expired", "revoked", "unknown-key", "unreadable"]
"""``bad``: not for these bytes. ``expired-key``: the key has expired; ``expired``: the signature itself has
expired. ``revoked``: the key was withdrawn. ``unknown-key``: this machine does not have the key.
``unreadable``: the signature is of an unknown kind.
"""


class Signature(msgspec.Struct, frozen=True, kw_only=True):
    """One PGP signature.

    ``fingerprint`` is the primary key's, in hexadecimal, if known, otherwise the number of the key; ``user``
    is the key's user id, which its owner chose. ``made`` is UTC in ISO 8601. ``text`` is the signed text;
    without ``good`` it is not trustworthy.
    """

    state: SignatureState
    fingerprint: str = ""
    user: str = ""
    made: str = ""
    text: bytes = b""

    @property
    def signer(self) -> str:
        """Return the signer for a message."""
        return f"{self.user} ({self.fingerprint})" if self.user else self.fingerprint or "an unknown signer"


FileState = Literal["none", "good", "unknown-key", "no-gpg"]
"""``none``: the image has no signature. ``no-gpg``: the file has a signature, and this machine has no gpg to
check it.
"""


class FileSignature(msgspec.Struct, frozen=True, kw_only=True):
    """Who signed a bundle or a lock.

    ``sha256`` is the hash that was signed; empty if unknown.
    """

    state: FileState = "none"
    user: str = ""
    fingerprint: str = ""
    sha256: str = ""

    @property
    def description(self) -> str:
        """Return who signed, in words that follow the name of the file."""
        match self.state:
            case "good":
                return f"signed by {self.user or 'a key without a name'}, key {self.fingerprint}"
            case "unknown-key":
                return f"signed with the key {self.fingerprint}, which is not in your keyring"
            case "no-gpg":
                return "not checked: the image has a signature, but gpg is not installed"
            case _:
                return "not signed"
