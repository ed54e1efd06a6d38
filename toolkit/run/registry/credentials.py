"""Read logins for registries, as ``docker login`` and ``apptainer registry login`` store them.

toolkit neither reads a password from a command line nor puts a password on a command line.
"""

import base64
import binascii
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from toolkit.data import home
from toolkit.decoding import DECODE_ERRORS
from toolkit.errors import BadInput, CheckFailed, Missing
from toolkit.run.command import Command
from toolkit.run.local import LocalRunner

_HUB_KEYS = ("https://index.docker.io/v1/", "index.docker.io", "docker.io", "registry-1.docker.io")
_HELPER = re.compile(r"[A-Za-z0-9._-]+")
_HELPER_SECONDS = 60.0
"""The time limit of a credential helper in seconds. A credential helper may ask the user to unlock a key
ring.
"""
_TOKEN_USER = "<token>"  # noqa: S105 - a credential helper returns this user name with a token


class _Entry(msgspec.Struct, frozen=True):
    auth: str = ""
    username: str = ""
    password: str = ""
    identitytoken: str = ""
    registrytoken: str = ""


class _DockerConfig(msgspec.Struct, frozen=True):
    auths: dict[str, _Entry] | None = None
    credHelpers: dict[str, str] | None = None  # noqa: N815 - docker's name
    credsStore: str = ""  # noqa: N815 - docker's name


class _Helped(msgspec.Struct, frozen=True):
    Username: str = ""
    Secret: str = ""


@dataclass(frozen=True, slots=True)
class Login:
    """A user's login for a registry. ``token`` is a refresh token, which toolkit exchanges for the tokens
    that requests need (OAuth 2). ``bearer`` is a token that toolkit sends directly and does not exchange.

    ``source`` names, in messages, the login file or the credential helper from which the login comes.
    """

    source: str
    user: str = ""
    password: str = ""
    token: str = ""
    bearer: str = ""

    def __repr__(self) -> str:
        return f"Login({self.source!r}, user={self.user!r})"  # a log must not show the password


def find_login(host: str) -> Login | None:
    """Return the login for ``HOST[:PORT]`` from the first login file that has a login for this host. Return
    ``None`` if no login file has a login for this host.

    Raises:
        BadInput: if a login file cannot be read, or is damaged.
        CheckFailed: if a credential helper fails.
        Missing: if a login file names a credential helper that is not installed.
    """
    for file in login_files():
        try:
            text = file.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            raise BadInput(f"{file}: cannot be read: {error.strerror}") from error
        if login := _look_up(read_config(text, file), host, str(file)):
            return login
    return None


def login_files() -> Iterator[Path]:
    """Yield the paths of the files that may contain logins, in the order in which toolkit reads the files."""
    if named := os.environ.get("REGISTRY_AUTH_FILE"):
        yield Path(named)
    at_home = home()
    if folder := os.environ.get("DOCKER_CONFIG") or (at_home and at_home / ".docker"):
        yield Path(folder) / "config.json"
    if runtime := os.environ.get("XDG_RUNTIME_DIR"):
        yield Path(runtime) / "containers" / "auth.json"
    if folder := os.environ.get("APPTAINER_CONFIGDIR") or (at_home and at_home / ".apptainer"):
        yield Path(folder) / "docker-config.json"
    if at_home:
        yield at_home / ".singularity" / "docker-config.json"


def read_config(text: bytes, file: Path) -> _DockerConfig:
    """Parse the text of a login file.

    Raises:
        BadInput: if the file is damaged; the error does not show the file's content.
    """
    try:
        return msgspec.json.decode(text or b"{}", type=_DockerConfig)
    except DECODE_ERRORS as error:
        raise BadInput(
            f"{file}: not a valid login file in Docker's format",
            fix="fix the file, or log in again: `docker login HOST`",
        ) from error


def _look_up(config: _DockerConfig, host: str, file: str) -> Login | None:
    keys = _keys(host)
    for key in keys:
        if helper := (config.credHelpers or {}).get(key):
            return _ask(helper, key, file)
    for known, entry in (config.auths or {}).items():
        if _plain(known) in map(_plain, keys) and (login := _from_entry(entry, file)):
            return login
    if config.credsStore:
        for key in keys:
            if login := _ask(config.credsStore, key, file):
                return login
    return None


def _keys(host: str) -> tuple[str, ...]:
    return _HUB_KEYS if host in _HUB_KEYS else (host, f"https://{host}")


def _plain(key: str) -> str:
    """Return the host in a key of a login file. A key is a host or, in files of old Docker releases, an
    address such as ``https://HOST/v1/``.
    """
    return key.removeprefix("https://").removeprefix("http://").partition("/")[0].lower()


def _from_entry(entry: _Entry, file: str) -> Login | None:
    user, password = entry.username, entry.password
    if entry.auth:
        try:
            text = base64.b64decode(entry.auth, validate=True).decode()
        except (binascii.Error, ValueError) as error:
            raise BadInput(
                f"{file}: the field auth does not contain a user and a password in base64",
                fix="log in again: `docker login HOST`",
            ) from error
        user, _, password = text.partition(":")
    login = Login(file, user, password.rstrip("\0"), entry.identitytoken, entry.registrytoken)
    return login if login.password or login.token or login.bearer else None


def _ask(helper: str, key: str, file: str) -> Login | None:
    if not _HELPER.fullmatch(helper):
        raise BadInput(f"{file}: {helper!r} is not the name of a credential helper")
    program = f"docker-credential-{helper}"
    try:
        done = LocalRunner().run(Command.of(program, "get", stdin=key.encode(), timeout=_HELPER_SECONDS))
    except Missing as error:
        raise Missing(f"{file} names the credential helper {program}, which is not installed") from error
    if not done.ok:
        # A failed credential helper prints its error as one line on standard output or standard error.
        # A failed helper's output contains no secret, because only a successful helper prints credentials.
        lines = (done.text.strip() or done.errors.strip()).splitlines()[:1]
        if lines and "not found" in lines[0]:
            return None
        raise CheckFailed(
            f"{program} cannot read the login for {key}: {lines[0] if lines else 'it gave no reason'}"
        )
    try:
        answer = msgspec.json.decode(done.stdout, type=_Helped)
    except DECODE_ERRORS as error:
        raise CheckFailed(
            f"{program} printed invalid output; expected JSON with Username and Secret"
        ) from error
    if answer.Username == _TOKEN_USER:
        return Login(program, token=answer.Secret)
    return Login(program, answer.Username, answer.Secret)
