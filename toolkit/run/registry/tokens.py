"""Prove who we are to a registry: Basic, or a token for each scope (distribution: "Token Authentication")."""

import base64
from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec

from toolkit.errors import CheckFailed, Missing
from toolkit.run.registry.answers import refused, unreachable
from toolkit.run.registry.challenge import Challenge, read_challenges
from toolkit.run.registry.credentials import Login
from toolkit.run.registry.name import is_loopback

if TYPE_CHECKING:
    import requests

_TIMEOUT = (15.0, 60.0)
_MOST = 1 << 20

_Proof = Callable[["requests.PreparedRequest"], "requests.PreparedRequest"]


class _Token(msgspec.Struct, frozen=True):
    token: str = ""
    access_token: str = ""


class Tokens:
    """What to show with each request to ``host``; ``login`` is shown where it is asked for and not before."""

    def __init__(
        self, http: "requests.Session", host: str, login: Login | None, *, may_be_plain: bool
    ) -> None:
        self._http, self._host, self._login = http, host, login
        self._may_be_plain = may_be_plain
        self._header = {"": ""}
        self._basic = False

    @property
    def source(self) -> str:
        """Name where the login was found; empty text where there is none."""
        return self._login.source if self._login else ""

    def proof(self, scope: str) -> _Proof:
        """Return what adds the header for a scope."""
        header = self._header[""] if self._basic else self._header.get(scope, "")

        def add(request: "requests.PreparedRequest") -> "requests.PreparedRequest":
            if header:
                request.headers["Authorization"] = header
            return request

        return add

    def answer(self, header: str, scope: str) -> bool:
        """Get ready to ask again after a refusal; tell whether there is anything new to show.

        Raises:
            CheckFailed: if what the registry asks for makes no sense.
            Missing: if the server of tokens cannot be reached.
        """
        before = self._header[""] if self._basic else self._header.get(scope, "")
        for challenge in read_challenges(header):
            if challenge.scheme == "bearer":
                self._header[scope] = f"Bearer {self._token(challenge, scope)}"
                return self._header[scope] != before
            if challenge.scheme == "basic" and self._login and self._login.password:
                self._basic = True
                self._header[""] = basic(self._login)
                return self._header[""] != before
        return False

    def _token(self, challenge: Challenge, scope: str) -> str:
        if self._login and self._login.bearer:
            return self._login.bearer
        realm = challenge.parameters.get("realm", "")
        self._check_realm(realm)
        asked = {
            "service": challenge.parameters.get("service", ""),
            "scope": scope or challenge.parameters.get("scope", ""),
        }
        answer = self._asked(realm, {key: value for key, value in asked.items() if value})
        with answer:
            if answer.status_code in {401, 403}:
                raise refused(self._host, 401, "", self.source)
            if answer.status_code != 200:
                raise Missing(f"{self._host}: its server of tokens answers {answer.status_code}")
            return read_token(answer.raw.read(_MOST, decode_content=True), self._host)

    def _asked(self, realm: str, asked: dict[str, str]) -> "requests.Response":
        import requests

        login = self._login
        try:
            if login and login.token:
                form = {
                    **asked,
                    "grant_type": "refresh_token",
                    "refresh_token": login.token,
                    "client_id": "toolkit",
                }
                return self._http.post(
                    realm, data=form, timeout=_TIMEOUT, auth=_bare, stream=True, allow_redirects=False
                )
            headers = {"Authorization": basic(login)} if login and login.password else {}
            # Several scopes are several parameters here, and words of one in the form above (RFC 6749, 3.3).
            query = {**asked, "scope": asked.get("scope", "").split()}
            return self._http.get(
                realm, params=query, timeout=_TIMEOUT, auth=_with(headers), stream=True, allow_redirects=False
            )
        except requests.exceptions.RequestException as error:
            raise unreachable(urlsplit(realm).netloc, error) from error

    def _check_realm(self, realm: str) -> None:
        try:
            parts = urlsplit(realm)
        except ValueError as error:
            raise CheckFailed(
                f"{self._host} sends us for a token to {realm[:80]!r}, which is no address"
            ) from error
        plain = parts.scheme == "http" and (self._may_be_plain and is_loopback(parts.netloc))
        if not parts.netloc or "@" in parts.netloc or not (parts.scheme == "https" or plain):
            raise CheckFailed(
                f"{self._host} sends us for a token to {realm[:80]!r}, which is not protected by TLS",
                fix="ask who runs the registry",
            )


def basic(login: Login) -> str:
    """Return the header of RFC 7617."""
    return "Basic " + base64.b64encode(f"{login.user}:{login.password}".encode()).decode()


def read_token(text: bytes, host: str) -> str:
    """Return the token of such an answer.

    Raises:
        CheckFailed: if there is none in it that a header can carry.
    """
    try:
        found = msgspec.json.decode(text, type=_Token)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise CheckFailed(f"{host}: its server of tokens answers with something else") from error
    token = found.token or found.access_token
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise CheckFailed(f"{host}: its server of tokens answers without a token")
    return token


def _with(headers: dict[str, str]) -> _Proof:
    def add(request: "requests.PreparedRequest") -> "requests.PreparedRequest":
        request.headers.update(headers)
        return request

    return add


_bare = _with({})
