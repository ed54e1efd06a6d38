"""Parse the lines of known_hosts files, and compare them with the key that an SSH host offers.

The section "SSH_KNOWN_HOSTS FILE FORMAT" of sshd(8) describes the format of known_hosts files.
"""

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

REVOKED_MARK = "@revoked"
AUTHORITY_MARK = "@cert-authority"
_HASHED = re.compile(r"\|1\|(?P<salt>[A-Za-z0-9+/=]+)\|(?P<hash>[A-Za-z0-9+/=]+)")
_KINDS = {"ssh-rsa": "RSA", "ssh-dss": "DSA", "ssh-ed25519": "ED25519"}


@dataclass(frozen=True, slots=True)
class HostKey:
    """A host's public key. ``kind`` is SSH's name of the key type, such as ``ssh-ed25519``; ``blob`` is the
    key in SSH's binary format (RFC 4253, section 6.6).
    """

    kind: str
    blob: bytes

    def __str__(self) -> str:
        return f"{self.name} {self.fingerprint}"

    @property
    def name(self) -> str:
        """The key type as ``ssh-keygen -l`` prints it."""
        return _KINDS.get(self.kind, "ECDSA" if self.kind.startswith("ecdsa-") else self.kind)

    @property
    def fingerprint(self) -> str:
        """The SHA-256 fingerprint, as ``ssh-keygen -l`` prints it."""
        digest = hashlib.sha256(self.blob).digest()
        return f"SHA256:{base64.b64encode(digest).decode().rstrip('=')}"


@dataclass(frozen=True, slots=True)
class KnownHost:
    """A line of a known_hosts file. ``location`` is ``FILE:LINE``. ``marker`` is the line's marker, such as
    ``@revoked``; it is empty if the line has no marker. ``names`` are the line's host names and host
    patterns.
    """

    location: str
    marker: str
    names: tuple[str, ...]
    key: HostKey

    @property
    def has_patterns(self) -> bool:
        """Whether the line contains a host pattern, which has a ``*``, ``?`` or ``!``.

        ``ssh-keygen -R`` does not remove a line with a host pattern.
        """
        return any(set(name) & set("*?!") for name in self.names)


Verdict = Literal["known", "revoked", "changed", "authority", "other-kind", "unknown"]
"""The result of the check of a host's key; toolkit accepts the key only if the verdict is ``known``.

``revoked``: a line revokes the key. ``changed``: a line for the host has a different key of the same type.
``authority``: a line trusts a certificate authority for the host. ``other-kind``: the lines for the host have
only keys of other types. ``unknown``: no line applies to the host.
"""


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict on a host's key. ``entry`` is the known_hosts line that determines the verdict, or ``None``
    for ``unknown``.
    """

    verdict: Verdict
    entry: KnownHost | None = None


def read_entries(text: str, file: str) -> Iterator[KnownHost]:
    """Yield the valid lines of a known_hosts file. toolkit skips invalid lines, as ``ssh`` does."""
    for number, line in enumerate(text.splitlines(), 1):
        fields = line.split()
        marker = fields.pop(0) if fields and fields[0].startswith("@") else ""
        if len(fields) < 3 or fields[0].startswith("#") or marker not in {"", REVOKED_MARK, AUTHORITY_MARK}:
            continue
        if (blob := _blob(fields[1], fields[2])) is not None:
            names = tuple(fields[0].split(","))
            yield KnownHost(f"{file}:{number}", marker, names, HostKey(fields[1], blob))


def names_of(host: str, port: int) -> tuple[str, ...]:
    """Return the names under which a known_hosts file may list a host, with the most specific name first."""
    return (host.lower(),) if port == 22 else (f"[{host.lower()}]:{port}", host.lower())


def judge(entries: Iterable[KnownHost], names: tuple[str, ...], key: HostKey) -> Judgement:
    """Return the verdict on the key that a host offers, from the known_hosts lines for the host's ``names``.

    toolkit refuses a key that any known_hosts line revokes, even a line for another host. If the lines have
    several keys for the first of ``names``, toolkit accepts each of these keys. A line for one of the further
    names can make a key known, but never leads to the verdict ``changed`` or ``other-kind``.
    """
    all_entries = tuple(entries)
    if entry := _first(all_entries, lambda e: e.marker == REVOKED_MARK and e.key == key):
        return Judgement("revoked", entry)
    best = tuple(e for e in all_entries if is_named(e, names[0]))
    plain = tuple(e for e in best if not e.marker)
    alias_entries = tuple(e for e in all_entries if not e.marker and any(is_named(e, n) for n in names[1:]))
    if entry := _first(plain, lambda e: e.key == key):
        return Judgement("known", entry)
    if entry := _first(plain, lambda e: e.key.kind == key.kind):
        return Judgement("changed", entry)
    if entry := _first(alias_entries, lambda e: e.key == key):
        return Judgement("known", entry)
    if entry := _first(
        all_entries, lambda e: e.marker == AUTHORITY_MARK and any(is_named(e, n) for n in names)
    ):
        return Judgement("authority", entry)
    return Judgement("other-kind", plain[0]) if plain else Judgement("unknown")


def kinds_of(entries: Iterable[KnownHost], names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the key types of a host's known keys. toolkit prefers these key types when it connects to the
    host.
    """
    kinds = (e.key.kind for name in names for e in entries if not e.marker and is_named(e, name))
    return tuple(dict.fromkeys(kinds))


def is_named(entry: KnownHost, name: str) -> bool:
    """Return whether a known_hosts line applies to the host ``name``. A negated pattern in the line may
    exclude the host.
    """
    named = False
    for pattern in entry.names:
        if pattern.startswith("!"):
            if _matches(pattern[1:], name):
                return False
        elif _matches(pattern, name):
            named = True
    return named


def paths(setting: str, exists: Callable[[str], bool]) -> list[str]:
    """Return the paths in ``setting``, the value of ``UserKnownHostsFile`` or ``GlobalKnownHostsFile``.

    ``exists`` returns whether a path is a file. The value contains several paths, or one path with spaces.
    paramiko removes the quotes around a path with spaces. toolkit therefore splits the value at spaces only
    if the whole value is not the path of a file.
    """
    return [setting] if exists(setting) else setting.split()


def _matches(pattern: str, name: str) -> bool:
    if pattern.startswith("|"):
        hashed = _HASHED.fullmatch(pattern)
        salt, digest = (_decoded(hashed[part]) if hashed else None for part in ("salt", "hash"))
        if salt is None or digest is None:
            return False
        return hmac.compare_digest(hmac.digest(salt, name.encode(), "sha1"), digest)
    wild = "".join({"*": ".*", "?": "."}.get(c, re.escape(c)) for c in pattern.lower())
    return re.fullmatch(wild, name) is not None


def _first(entries: Iterable[KnownHost], predicate: Callable[[KnownHost], bool]) -> KnownHost | None:
    return next((entry for entry in entries if predicate(entry)), None)


def _blob(kind: str, text: str) -> bytes | None:
    """Return the bytes of a public key from its Base64 text. Return ``None`` if the text is not Base64, or if
    the bytes do not start with the key type ``kind``.
    """
    blob = _decoded(text)
    named = len(kind).to_bytes(4, "big") + kind.encode()
    return blob if blob is not None and blob.startswith(named) else None


def _decoded(text: str) -> bytes | None:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
