"""The signature of an image, a bundle or a lock: its state and its signer."""

from typing import Literal

import msgspec

SignatureState = Literal["good", "bad", "expired-key", "expired", "revoked", "unknown-key", "unreadable"]
"""The state of a signature. ``bad``: the signature does not match the file. ``expired-key``: the key has
expired. ``expired``: the signature has expired. ``revoked``: the key's owner revoked the key.
``unknown-key``: this machine does not have the key. ``unreadable``: toolkit does not support this kind of
signature.
"""


class Signature(msgspec.Struct, frozen=True, kw_only=True):
    """One PGP signature.

    ``fingerprint`` is the fingerprint of the primary key in hexadecimal, or the key id if the fingerprint is
    unknown. ``user`` is the user id that the key's owner chose. ``made`` is the time of the signature, in UTC
    and in ISO 8601 format. ``text`` is the signed text; do not trust this text unless ``state`` is ``good``.
    """

    state: SignatureState
    fingerprint: str = ""
    user: str = ""
    made: str = ""
    text: bytes = b""

    @property
    def signer(self) -> str:
        """Return the signer as messages show it: the user id and the fingerprint, as far as known."""
        return f"{self.user} ({self.fingerprint})" if self.user else self.fingerprint or "an unknown signer"


FileState = Literal["none", "good", "unknown-key", "no-gpg"]
"""The state of a file's signature. ``none``: the file has no signature. ``good``: the signature matches the
file. ``unknown-key``: this machine does not have the key. ``no-gpg``: toolkit did not check the signature,
because this machine has no gpg.
"""


class FileSignature(msgspec.Struct, frozen=True, kw_only=True):
    """The signature of a bundle or a lock.

    ``sha256`` is the hash that the signer signed; it is empty if unknown.
    """

    state: FileState = "none"
    user: str = ""
    fingerprint: str = ""
    sha256: str = ""

    @property
    def description(self) -> str:
        """Return a phrase about the signature, such as ``not signed``; messages print it after the file's
        name.
        """
        match self.state:
            case "good":
                return f"signed by {self.user or 'a key without a name'}, key {self.fingerprint}"
            case "unknown-key":
                return f"signed with the key {self.fingerprint}, which is not in your keyring"
            case "no-gpg":
                return "not checked: the file has a signature, but gpg is not installed"
            case _:
                return "not signed"
