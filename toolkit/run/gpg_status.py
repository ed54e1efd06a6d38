"""Parse gpg's status lines (GnuPG: doc/DETAILS), which do not depend on the user's language."""

import datetime as dt
import re

from toolkit.model.signature import Signature, SignatureState

_PREFIX = "[GNUPG:] "
_VERDICTS: dict[str, SignatureState] = {
    "GOODSIG": "good",
    "BADSIG": "bad",
    "EXPSIG": "expired",
    "EXPKEYSIG": "expired-key",
    "REVKEYSIG": "revoked",
    "ERRSIG": "unreadable",
}
_NO_KEY = "9"
"""The reason code in an ERRSIG line for a missing key."""
_SOUND = {"8", "9", "10", "11"}
"""The codes of SHA-256, SHA-384, SHA-512 and SHA-224 (RFC 4880, 9.4). toolkit accepts no signature with
another hash.
"""
_MORE = {"NODATA", "UNEXPECTED", "BADARMOR"}
_HEX = re.compile(r"[0-9A-F]{16,64}")


def signature(status: str, text: bytes) -> Signature:
    """Return the signature of one clear-signed message from the status lines of ``gpg --verify``.

    The exit status of gpg is not enough: gpg also exits with 0 if the key of the signature has expired or was
    revoked.
    """
    # Do not use splitlines(), which also splits at Unicode line breaks inside a user ID.
    rows = [line.removeprefix(_PREFIX).split(" ") for line in status.split("\n") if line.startswith(_PREFIX)]
    verdicts = [row for row in rows if row[0] in _VERDICTS]
    # If the file contains a second signed message, gpg prints a second result or an error.
    if len(verdicts) != 1 or any(_is_trouble(row) for row in rows):
        return Signature(state="unreadable")
    word, *rest = verdicts[0]
    valid = [row for row in rows if row[0] == "VALIDSIG"]
    state = _VERDICTS[word]
    if word == "ERRSIG":
        return _parse_errsig(rest, text)
    key = rest[0] if rest and _HEX.fullmatch(rest[0]) else ""
    user = _safe_user(" ".join(rest[1:]))
    if len(valid) != 1 or len(valid[0]) < 11:
        # gpg prints a VALIDSIG line, with the fingerprint, only if the signature matches the text.
        return Signature(state="bad" if state == "good" else state, fingerprint=key, user=user)
    seconds, algorithm, primary = valid[0][3], valid[0][8], valid[0][10]
    if state == "good" and algorithm not in _SOUND:
        state = "unreadable"
    return Signature(state=state, fingerprint=primary, user=user, made=_date(seconds), text=text)


def is_answer(status: str) -> bool:
    """Return whether gpg's status lines show that gpg used its keys to check the message.

    The result is False if gpg printed no status line about the message, for example because gpg has no home
    folder. The result is also False if gpg cannot open its keyring, because gpg then reports every key as
    missing.
    """
    rows = [line.removeprefix(_PREFIX).split(" ") for line in status.split("\n") if line.startswith(_PREFIX)]
    if any(row[:2] == ["ERROR", "add_keyblock_resource"] for row in rows):
        return False
    return any(row[0] in _VERDICTS or _is_trouble(row) for row in rows)


def has_signed(status: str) -> bool:
    """Return whether gpg's status lines report one new signature, with a hash that toolkit accepts."""
    rows = [line.split(" ") for line in status.split("\n") if line.startswith(f"{_PREFIX}SIG_CREATED ")]
    return len(rows) == 1 and len(rows[0]) > 4 and rows[0][4] in _SOUND


def _is_trouble(row: list[str]) -> bool:
    return row[0] in _MORE or (row[0] == "ERROR" and row[1:2] == ["proc_pkt.plaintext"])


def _parse_errsig(rest: list[str], text: bytes) -> Signature:
    """Return the signature that gpg's ERRSIG line describes. Its state is ``unknown-key`` if the key is
    missing, and ``unreadable`` for any other reason.

    ``rest`` has the words after ERRSIG: key, two algorithms, class, time, reason and fingerprint.
    """
    if len(rest) < 6 or rest[5] != _NO_KEY:
        return Signature(state="unreadable")
    names = [word for word in (rest[6] if len(rest) > 6 else "", rest[0]) if _HEX.fullmatch(word)]
    return Signature(
        state="unknown-key", fingerprint=names[0] if names else "", made=_date(rest[4]), text=text
    )


def _date(seconds: str) -> str:
    if not seconds.isascii() or not seconds.isdigit() or len(seconds) > 11:
        return ""
    return dt.datetime.fromtimestamp(int(seconds), dt.UTC).isoformat()


def _safe_user(user: str) -> str:
    """Return the first 200 characters of a user ID, without control characters and line breaks."""
    return "".join(letter for letter in user if letter.isprintable())[:200]
