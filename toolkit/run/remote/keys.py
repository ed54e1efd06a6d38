"""Create SSH key pairs without any program of this machine."""

import io
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A private key in the form of its file, and its public half as ``TYPE BASE64``."""

    private: str
    public: str


def new_key_pair() -> KeyPair:
    """Return a new pair, of a kind that every OpenSSH since 2011 accepts."""
    import paramiko

    key = paramiko.ECDSAKey.generate(bits=256)
    written = io.StringIO()
    key.write_private_key(written)
    return KeyPair(written.getvalue(), f"{key.get_name()} {key.get_base64()}")
