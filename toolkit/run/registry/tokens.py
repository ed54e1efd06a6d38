"""Authenticate to a registry with user and password (HTTP Basic), or with one token for each scope.

A scope names a repository and the permitted actions. Source: documentation of the registry server
``distribution``, "Token Authentication".
"""

import base64
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec

from toolkit.decoding import DECODE_ERRORS
from toolkit.errors import CheckFailed, Missing
from toolkit.run.registry.answers import error_words, permission_error, refusal_error, unreachable_error
from toolkit.run.registry.challenge import Challenge, read_challenges
from toolkit.run.registry.credentials import Login
from toolkit.run.registry.name import is_loopback
from toolkit.run.web.client import Client, Proof, Response
from toolkit.run.web.limits import Limits
from toolkit.run.web.redirects import without_login

if TYPE_CHECKING:
    import requests

_MOST = 1 << 20
"""The largest size of a token server's response in bytes; real responses have a few thousand bytes."""


class _Token(msgspec.Struct, frozen=True):
    token: str = ""
    access_token: str = ""


class Tokens:
    """Authenticates requests to ``host``. toolkit sends the user's ``login`` only if the server requires
    authentication. ``may_be_plain`` says whether the connection to the registry may use HTTP without TLS.
    """

    def __init__(self, client: Client, host: str, login: Login | None, *, may_be_plain: bool) -> None:
        self._client, self._host, self._login = client, host, login
        self._may_be_plain = may_be_plain
        # Other users of the network can read passwords that toolkit sends over plain HTTP to another machine.
        # Only --plain-http permits such a connection.
        self._is_exposed = may_be_plain and not is_loopback(host)
        self._header = {"": ""}
        self._basic = False

    @property
    def source(self) -> str:
        """The name of the login file or credential helper with the login, or an empty string if toolkit found
        no login.
        """
        return self._login.source if self._login else ""

    @property
    def user(self) -> str:
        """The user's name for messages. If the login has no user name, the text is ``the login of SOURCE``.
        If toolkit found no login, the text is empty.
        """
        return (self._login.user or f"the login of {self._login.source}") if self._login else ""

    def has_granted(self, scope: str) -> bool:
        """Return whether the token server issued a token for a scope."""
        own = self._login and self._login.bearer
        return not self._basic and not own and bool(self._header.get(scope))

    def proof(self, scope: str) -> Proof:
        """Return a function that adds the authentication header for a scope to a request."""
        header = self._header[""] if self._basic else self._header.get(scope, "")

        def add(request: "requests.PreparedRequest") -> "requests.PreparedRequest":
            if header:
                request.headers["Authorization"] = header
            return request

        return add

    def answer(self, header: str, scope: str) -> bool:
        """Prepare a retry of a request after status 401. Return whether the retry will have a new
        authentication header. ``header`` is the ``WWW-Authenticate`` header of the response.

        Raises:
            CheckFailed: if the registry names an invalid token server, or the token server's response is
                invalid, or toolkit would send a password or a token over plain HTTP.
            Missing: if the token server is unreachable, or refuses to issue a token.
        """
        before = self._header[""] if self._basic else self._header.get(scope, "")
        for challenge in read_challenges(header):
            if challenge.scheme == "bearer":
                self._header[scope] = f"Bearer {self._token(challenge, scope)}"
                return self._header[scope] != before
            if challenge.scheme == "basic" and self._login and self._login.password:
                self._check_protected("the password")
                self._basic = True
                self._header[""] = basic(self._login)
                return self._header[""] != before
        return False

    def _token(self, challenge: Challenge, scope: str) -> str:
        if self._login and self._login.bearer:
            self._check_protected("the token")
            return self._login.bearer
        realm = challenge.parameters.get("realm", "")
        self._check_realm(realm)
        parameters = {
            "service": challenge.parameters.get("service", ""),
            "scope": scope or challenge.parameters.get("scope", ""),
        }
        answer = self._ask_server(realm, {key: value for key, value in parameters.items() if value})
        with answer:
            if answer.status_code == 401:
                raise refusal_error(self._host, 401, "", self.source)
            if answer.status_code == 403:
                raise permission_error(self._host, scope, error_words(answer), self.user)
            if answer.status_code != 200:
                raise Missing(f"{self._host}: its token server answers with HTTP status {answer.status_code}")
            return read_token(_read(answer, self._host), self._host)

    def _ask_server(self, realm: str, parameters: dict[str, str]) -> Response:
        login = self._login
        if login and login.token:
            form = {
                **parameters,
                "grant_type": "refresh_token",
                "refresh_token": login.token,
                "client_id": "toolkit",
            }
            return self._send("POST", realm, {}, data=form)
        headers = {"Authorization": basic(login)} if login and login.password else {}
        # In a GET query, each scope is a separate parameter. In the POST form above, one parameter contains
        # all scopes, separated by blanks (RFC 6749, 3.3).
        query = {**parameters, "scope": parameters.get("scope", "").split()}
        return self._send("GET", realm, headers, params=query)

    def _send(self, method: str, realm: str, secret: dict[str, str], **options: Any) -> Response:  # noqa: ANN401 - for Client
        import requests

        proof = lambda _: _with(secret)  # noqa: E731 - a short function
        try:
            return self._client.request(
                method, realm, headers={}, proof=proof, limits=Limits(), redirects=False, **options
            )
        except requests.exceptions.RequestException as error:
            raise unreachable_error(urlsplit(realm).netloc, error) from error

    def _check_protected(self, secret: str) -> None:
        if self._is_exposed:
            raise CheckFailed(
                f"the registry {self._host} asks for {secret} from {self.source} over plain HTTP; toolkit "
                f"did not send {secret}, because other users of the network could read {secret}",
                fix=(
                    "set up TLS for the registry, and omit `--plain-http`; or remove the login: `docker "
                    "logout "
                    f"{self._host}`"
                ),
            )

    def _check_realm(self, realm: str) -> None:
        try:
            parts = urlsplit(realm)
        except ValueError as error:
            raise CheckFailed(
                f"{self._host} names a token server at {without_login(realm)[:80]!r}, which is not a valid "
                "address"
            ) from error
        plain = parts.scheme == "http" and (self._may_be_plain and is_loopback(parts.netloc))
        if not parts.netloc or "@" in parts.netloc or not (parts.scheme == "https" or plain):
            shown = without_login(realm)[:80]
            raise CheckFailed(
                f"{self._host} names a token server at {shown!r}, which is not protected by TLS",
                fix="ask the operators of the registry to protect the token server with TLS",
            )


def _read(answer: Response, host: str) -> bytes:
    text = answer.read(_MOST + 1)
    if len(text) > _MOST:
        raise CheckFailed(f"{host}: its token server sends more than {_MOST >> 20} MiB")
    return text


def basic(login: Login) -> str:
    """Return the value of an ``Authorization`` header with user and password (RFC 7617)."""
    return "Basic " + base64.b64encode(f"{login.user}:{login.password}".encode()).decode()


def read_token(text: bytes, host: str) -> str:
    """Return the token in a token server's response.

    Raises:
        CheckFailed: if the response has no token, or has a token that an HTTP header cannot contain.
    """
    try:
        answer = msgspec.json.decode(text, type=_Token)
    except DECODE_ERRORS as error:
        raise CheckFailed(f"{host}: its token server answers with invalid JSON") from error
    token = answer.token or answer.access_token
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise CheckFailed(f"{host}: its token server answers without a valid token")
    return token


def _with(headers: dict[str, str]) -> Proof:
    def add(request: "requests.PreparedRequest") -> "requests.PreparedRequest":
        request.headers.update(headers)
        return request

    return add
