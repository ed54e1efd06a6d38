"""Create SSH key pairs without ssh-keygen."""

import io
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A private key as the text of its file, and the public key as ``TYPE BASE64``."""

    private: str
    public: str


def new_key_pair() -> KeyPair:
    """Return a new ECDSA key pair. OpenSSH has accepted ECDSA keys since release 5.7 (2011)."""
    import paramiko

    key = paramiko.ECDSAKey.generate(bits=256)
    written = io.StringIO()
    key.write_private_key(written)
    return KeyPair(written.getvalue(), f"{key.get_name()} {key.get_base64()}")
