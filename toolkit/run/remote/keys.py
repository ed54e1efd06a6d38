"""Make SSH key pairs; needs no program on this machine."""

import io
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A private key as a file holds it, and its public half as ``TYPE BASE64``."""

    private: str
    public: str


def new_key_pair() -> KeyPair:
    """Return a fresh pair, of a kind that every OpenSSH since 2011 takes."""
    import paramiko

    key = paramiko.ECDSAKey.generate(bits=256)
    written = io.StringIO()
    key.write_private_key(written)
    return KeyPair(written.getvalue(), f"{key.get_name()} {key.get_base64()}")
