"""Make and check PGP signatures with gpg. gpg stores the keys, and toolkit never sees a passphrase."""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from toolkit.errors import BadInput, CheckFailed, Missing
from toolkit.files import open_given
from toolkit.model.signature import Signature
from toolkit.run import gpg_status
from toolkit.run.command import Command, Completed
from toolkit.run.local import LocalRunner

_SECONDS = 60.0
_PERSON_SECONDS = 300.0
"""The number of seconds for which toolkit waits while the user types a passphrase."""
_KEYBOX = b"KBXf"
_FINGERPRINT = 40
"""The number of hexadecimal digits in the fingerprint of a version 4 key. The SIF format has no room for a
longer fingerprint.
"""
_AT_HOME = ("can't create directory", "keyblock resource", "homedir")
"""Parts of the messages that gpg prints with LC_ALL=C if it cannot create or use its home folder. Source: the
folders ``g10`` and ``common`` of GnuPG's source code.
"""
_NO_PERSON = ("inappropriate ioctl", "no pinentry", "cancelled", "no such device", "timeout")


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A key that can sign.

    ``fingerprint`` is the fingerprint of the primary key in hexadecimal. ``user`` is the key's first user ID.
    """

    fingerprint: str
    user: str


def is_installed() -> bool:
    """Return whether gpg is on PATH."""
    return shutil.which("gpg") is not None


def signing_key(key_name: str) -> SigningKey:
    """Return the secret key that ``key_name`` identifies. ``key_name`` is a fingerprint, the end of a
    fingerprint, or an e-mail address.

    Raises:
        Missing: if gpg is not installed, cannot use its home folder, or has no such secret key.
        BadInput: if ``key_name`` is empty, several keys match, or the key is not of OpenPGP version 4.
        CheckFailed: if the key has expired, was revoked or cannot sign.
    """
    if not key_name.strip() or key_name.startswith("-"):
        raise BadInput(f"--key '{key_name}': not a key; give a fingerprint or an e-mail address")
    # For `<ADDRESS>`, gpg compares the whole e-mail address. For `ADDRESS`, it matches any part of a user ID.
    exact = f"<{key_name}>" if "@" in key_name and "<" not in key_name else key_name
    listed = _gpg("--with-colons", "--list-secret-keys", "--", exact)
    keys = _keys(listed.text)
    if not keys and _is_about_home(listed):
        raise _unusable(listed, "gpg cannot search for the key")
    if not keys:
        raise Missing(
            f"--key {key_name}: gpg has no such secret key",
            fix="list your secret keys: `gpg --list-secret-keys`; make a key: `gpg --quick-generate-key "
            "'NAME <EMAIL>'`",
        )
    if len(keys) > 1:
        several = ", ".join(key for key, *_ in keys)
        raise BadInput(f"--key {key_name}: several keys match: {several}", fix="give one of these keys")
    fingerprint, validity, abilities, user = keys[0]
    states = {"e": "has expired", "r": "was revoked", "d": "is disabled", "i": "is invalid"}
    if why := states.get(validity):
        raise CheckFailed(
            f"--key {key_name}: the key {fingerprint} {why}", fix="use another key, or make a new key"
        )
    if "S" not in abilities:
        raise CheckFailed(
            f"--key {key_name}: the key {fingerprint} cannot sign", fix="use another key, or make a new key"
        )
    if len(fingerprint) != _FINGERPRINT:
        raise BadInput(
            f"--key {key_name}: this OpenPGP key is not of version 4, the only version that a SIF accepts"
        )
    return SigningKey(fingerprint, user)


def clearsign(key: SigningKey, text: bytes) -> bytes:
    """Return the text as a clear-signed message: the text and its PGP signature. gpg's agent asks the user
    for the passphrase if necessary.

    Raises:
        CheckFailed: if gpg does not sign; the error contains gpg's message.
    """
    words = ("--digest-algo", "SHA256", "--local-user", key.fingerprint, "--status-fd", "2", "--clearsign")
    done = _gpg(*words, stdin=text, seconds=_PERSON_SECONDS)
    if done.ok and done.stdout and gpg_status.has_signed(done.errors):
        return done.stdout
    messages = [line for line in done.errors.splitlines() if not line.startswith("[GNUPG:]")]
    needs_person = done.timed_out or any(hint in line.lower() for line in messages for hint in _NO_PERSON)
    raise CheckFailed(
        f"gpg did not sign with the key {key.fingerprint}",
        fix="gpg's agent needs the passphrase of the key: run the same toolkit command in a terminal, or"
        " first run `gpg --clearsign` on any text to unlock the key"
        if needs_person
        else "check that gpg can sign: run `gpg --clearsign` on any text",
        detail=messages[-3:],
    )


@contextmanager
def verifier(keyring: Path | None) -> Iterator["Verifier"]:
    """Yield a verifier of signatures that uses only the keys in the file ``keyring``. If ``keyring`` is
    ``None``, the verifier uses the keys in the user's gpg home folder.

    Raises:
        BadInput: if the file ``keyring`` contains no public keys.
    """
    with tempfile.TemporaryDirectory(prefix="toolkit-keys-") as folder:
        if keyring is None:
            yield Verifier((), Path(folder))
            return
        yield Verifier(_isolating_arguments(keyring, folder), Path(folder))


def check_keyring(keyring: Path, option: str) -> None:
    """Check that a file contains public keys. ``option`` is the command-line option with which the user names
    the file, such as ``--keyring``. Error messages begin with ``option``.

    Raises:
        BadInput: if the file cannot be read, or contains no public keys.
        Missing: if gpg is not installed.
    """
    with tempfile.TemporaryDirectory(prefix="toolkit-keys-") as folder:
        _isolating_arguments(keyring, folder, option)


class Verifier:
    """Checks clear-signed messages.

    ``words`` are arguments of gpg that select the keys. ``folder`` is a temporary folder for gpg's files.
    """

    def __init__(self, words: tuple[str, ...], folder: Path) -> None:
        self._words, self._folder = words, folder

    def check(self, message: bytes) -> Signature:
        """Return the signature of a clear-signed message: its state, its key and the exact signed text.

        Raises:
            Missing: if gpg cannot check any signature, for example without a home folder.
            CheckFailed: if gpg does not answer within a minute.
        """
        signed, text = self._folder / "message.asc", self._folder / "text"
        signed.write_bytes(message)
        text.unlink(missing_ok=True)
        done = _gpg(
            *(*self._words, "--no-auto-key-retrieve", "--no-auto-key-locate", "--weak-digest", "SHA1"),
            *("--trust-model", "always", "--status-fd", "1"),
            *("--output", str(text), "--verify", str(signed)),
        )
        if done.timed_out:
            raise CheckFailed(
                "gpg did not answer within a minute", fix="restart the agent of gpg: `gpgconf --kill all`"
            )
        if not gpg_status.is_answer(done.text):
            raise _unusable(done, "gpg cannot check signatures")
        signature = gpg_status.signature(done.text, text.read_bytes() if text.is_file() else b"")
        if signature.state == "good" and not text.is_file():
            raise Missing("gpg is too old to report which text was signed", fix="install GnuPG 2.2 or later")
        return signature


def _isolating_arguments(keyring: Path, folder: str, option: str = "--keyring") -> tuple[str, ...]:
    """Return arguments with which gpg uses only the keys in ``keyring``. gpg's home folder is then
    ``folder``. ``option`` is as in :func:`check_keyring`.
    """
    with open_given(keyring, label=option) as file:
        head = file.read(12)
    home = ("--no-options", "--homedir", folder)
    if head[8:12] == _KEYBOX:
        return (*home, "--no-default-keyring", "--keyring", str(keyring.resolve()))
    done = _gpg(*home, "--import", str(keyring.resolve()))
    if not _gpg(*home, "--with-colons", "--list-keys").text.count("\npub:"):
        raise BadInput(
            f"{option} {keyring}: the file contains no public key",
            fix="write a file of public keys: `gpg --export --armor FINGERPRINT > keys.asc`",
            detail=done.errors.splitlines()[-2:],
        )
    return home


def _is_about_home(result: Completed) -> bool:
    return any(part in result.errors for part in _AT_HOME)


def _unusable(result: Completed, summary: str) -> Missing:
    """Return the exception to raise if gpg itself fails, for example because its home folder is not writable.
    ``summary`` is the start of the message, such as "gpg cannot check signatures".
    """
    messages = [line.removeprefix("gpg: ") for line in result.errors.splitlines() if line.strip()]
    why = next(
        (line for line in messages if any(part in line for part in _AT_HOME)),
        messages[-1] if messages else "",
    )
    return Missing(
        f"{summary}: {why or f'gpg exited with status {result.status} and printed no message'}",
        fix="set GNUPGHOME to your own writable folder"
        if _is_about_home(result)
        else "check that gpg works: `gpg --list-keys`",
        detail=messages[-3:] if len(messages) > 1 else (),
    )


def _keys(text: str) -> list[tuple[str, str, str, str]]:
    """Return the fingerprint, validity, capabilities and user ID of each secret key that gpg's
    ``--with-colons`` output lists.
    """
    keys: list[tuple[str, str, str, str]] = []
    for row in (line.split(":") for line in text.splitlines()):
        if row[0] == "sec" and len(row) > 11:
            keys.append(("", row[1], row[11], ""))
        elif keys and row[0] == "fpr" and len(row) > 9 and not keys[-1][0]:
            keys[-1] = (row[9], *keys[-1][1:])
        elif keys and row[0] == "uid" and len(row) > 9 and not keys[-1][3]:
            keys[-1] = (*keys[-1][:3], row[9])
    return [key for key in keys if key[0]]


def _gpg(*words: str, stdin: bytes | None = None, seconds: float = _SECONDS) -> Completed:
    env = {"LC_ALL": "C"}
    # gpg's agent asks for the passphrase on the terminal in GPG_TTY. Keep a value that the user set.
    if "GPG_TTY" not in os.environ and sys.stdin is not None and sys.stdin.isatty():
        env["GPG_TTY"] = os.ttyname(sys.stdin.fileno())
    command = Command(("gpg", "--batch", "--yes", *words), stdin=stdin, env=env, timeout=seconds)
    return LocalRunner().run(command)
