"""What a signature in an image was found to be worth, and whose it is."""

from typing import Literal

import msgspec

SignatureState = Literal["good", "bad", "expired-key", "expired", "revoked", "unknown-key", "unreadable"]
"""``bad``: not of these bytes. ``expired-key``: the key's time is over; ``expired``: that of the signature
itself. ``revoked``: the key was withdrawn. ``unknown-key``: nobody here has the key that it is checked with.
``unreadable``: it is no signature of a kind that is known."""


class Signature(msgspec.Struct, frozen=True, kw_only=True):
    """One PGP signature.

    ``fingerprint`` is that of the primary key, in hexadecimal, where it is known, else the number of the key;
    ``user`` is the key's user id, which whoever made the key chose. ``made`` is UTC in ISO 8601.
    ``text`` is what was signed; without ``good`` nobody vouches for it.
    """

    state: SignatureState
    fingerprint: str = ""
    user: str = ""
    made: str = ""
    text: bytes = b""

    @property
    def signer(self) -> str:
        """Name who signed, for a person."""
        return (
            f"{self.user} ({self.fingerprint})"
            if self.user
            else self.fingerprint or "nobody that can be told"
        )


FileState = Literal["none", "good", "unknown-key", "no-gpg"]
"""``none``: there is no signature. ``no-gpg``: there is one, and gpg is not here to check it."""


class FileSignature(msgspec.Struct, frozen=True, kw_only=True):
    """Who signed a bundle or a lock.

    ``sha256`` is the hash that was signed; empty where nothing is known of it.
    """

    state: FileState = "none"
    user: str = ""
    fingerprint: str = ""
    sha256: str = ""

    @property
    def described(self) -> str:
        """Say who signed, in words that follow the name of the file."""
        match self.state:
            case "good":
                return f"signed by {self.user or 'a key without a name'}, key {self.fingerprint}"
            case "unknown-key":
                return f"signed with the key {self.fingerprint}, which is not in your keyring"
            case "no-gpg":
                return "not checked: it has a signature, and gpg is not installed"
            case _:
                return "not signed"
