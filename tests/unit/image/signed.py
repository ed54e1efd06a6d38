"""Make SIF files whose tables have free entries, and gpg keys that sign them."""

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from toolkit.image.files.sif.sifobjects import (
    JSON,
    LABELS,
    PARTITION,
    SIGNATURE,
    Object,
    SifDescriptor,
    SifHeader,
    add,
    read_table,
)
from toolkit.image.trust.integrity import metadata

PUBLIC_KEY = """-----BEGIN PGP PUBLIC KEY BLOCK-----

mDMEawbLlxYJKwYBBAHaRw8BAQdAVORQqtbtsdy/H98dUfZKSVsUvKA2SgZk2Vt/
4v02wZ+0FUFkYSA8YWRhQGV4YW1wbGUub3JnPoiQBBMWCAA4FiEEH07FtFJAyfAM
nRwIcg0zaOY359kFAmsGy5cCGwMFCwkIBwIGFQoJCAsCBBYCAwECHgECF4AACgkQ
cg0zaOY359lfMAEA5P3JTkuSEnXRanbIOvb5Y5bUCgTrWhEnDoHYw99xBuABANHu
d3Fftd/UnViJzFY68qzSJZEwYyJNjWGMFnqWe/gF
=FtDu
-----END PGP PUBLIC KEY BLOCK-----
"""
"""A public key for tests that do not sign anything."""

_SLOTS = 8
_UNUSED = SifDescriptor(0, False, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, bytes(128), bytes(384))
_ROOT = b"\1\0\0\0\2\0\0\0" + b"02\0"
"""Descriptor data that marks an object as the primary squashfs partition for x86_64."""

OBJECTS = (
    Object(LABELS, b'{"label":"value"}', "labels"),
    Object(JSON, b'{"what":"provenance"}', "provenance.json"),
    Object(PARTITION, b"hsqs" + bytes(range(256)) * 64, "rootfs.squashfs", extra=_ROOT),
)


def write_sif(path: Path, *objects: Object, slots: int = _SLOTS) -> Path:
    """Write a SIF with ``objects`` and ``slots`` table entries, and return its path."""
    table, data = 4096, 32768
    header = SifHeader(
        b"#!/usr/bin/env run-singularity\n".ljust(32, b"\0"),
        *(b"SIF_MAGIC\0", b"01\0", b"02\0", bytes(range(16)), 1_700_000_000, 1_700_000_000),
        *(slots, slots, table, slots * 585, data, 0),
    )
    path.write_bytes(header.pack().ljust(table, b"\0") + _UNUSED.pack() * slots)
    with path.open("r+b") as file:
        add(file, path, *objects or OBJECTS)
    return path


@dataclass(frozen=True)
class Keys:
    """A gpg home folder with keys without a passphrase. ``at`` is a time in seconds since 1970."""

    home: Path

    def gpg(self, *words: str, at: int | None = None, stdin: bytes | None = None) -> bytes:
        faked = () if at is None else (f"--faked-system-time={at}!",)
        command = ["gpg", "--homedir", str(self.home), "--batch", "--yes", "--no-tty", *faked, *words]
        done = subprocess.run(command, input=stdin, capture_output=True, timeout=60)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout

    def make(self, user: str, *, passphrase: str = "", expires: str = "never", at: int | None = None) -> str:
        words = ("--pinentry-mode", "loopback", "--passphrase", passphrase)
        self.gpg(*words, "--quick-generate-key", user, "ed25519", "sign", expires, at=at)
        return self.fingerprint(user)

    def fingerprint(self, user: str) -> str:
        rows = self.gpg("--with-colons", "--list-keys", user).decode().splitlines()
        return next(row.split(":")[9] for row in rows if row.startswith("fpr:"))

    def public(self, path: Path, *users: str, armor: bool = True) -> Path:
        path.write_bytes(self.gpg(*(("--armor",) if armor else ()), "--export", *users))
        return path

    def forget_passphrases(self) -> None:
        subprocess.run(["gpgconf", "--homedir", str(self.home), "--reload", "gpg-agent"], check=True)

    def revoke(self, fingerprint: str) -> None:
        """Revoke a key with the certificate that gpg wrote when it created the key."""
        text = (self.home / "openpgp-revocs.d" / f"{fingerprint}.rev").read_text()
        self.gpg("--import", stdin=text.replace(":-----BEGIN", "-----BEGIN").encode())


@contextlib.contextmanager
def gpg_home() -> Iterator[Keys]:
    """Yield a gpg home folder in /tmp, because the path of the agent's socket must be short."""
    with tempfile.TemporaryDirectory(prefix="gpg-", dir="/tmp") as folder:
        keys = Keys(Path(folder))
        try:
            yield keys
        finally:
            if shutil.which("gpgconf"):
                subprocess.run(["gpgconf", "--homedir", folder, "--kill", "all"], check=False, env=os.environ)


def attach(sif: Path, keys: Keys, key: str, *words: str, at: int | None = None) -> None:
    """Sign a SIF with gpg itself, with a time or options that toolkit does not use."""
    with sif.open("r+b") as file:
        text = metadata(file, read_table(file, sif), 1)
        message = keys.gpg(
            *words, "--local-user", key, "--digest-algo", "SHA256", "--clearsign", at=at, stdin=text
        )
        extra = bytes.fromhex("01000000" + key)
        add(file, sif, Object(SIGNATURE, message, group=0, signed_group=1, extra=extra))
