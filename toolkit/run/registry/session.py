"""Send requests to one registry, with certificates, authentication and retries."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

from toolkit.errors import CheckFailed, Missing
from toolkit.run.registry.answers import (
    BUSY,
    error_words,
    is_distrusted,
    is_plain,
    permission_error,
    refusal_error,
    unreachable_error,
)
from toolkit.run.registry.credentials import find_login
from toolkit.run.registry.name import RegistryName, is_loopback
from toolkit.run.registry.tokens import Tokens
from toolkit.run.registry.trust import tls_settings
from toolkit.run.web.client import Client, Proof, Response, prove_nothing
from toolkit.run.web.http import pause_before
from toolkit.run.web.limits import Limits, broken_limit
from toolkit.run.web.redirects import without_login

_COMMIT = Limits(600.0, 600.0)
"""The time limits for a PUT request, in seconds. The limits are long, because a PUT request finishes the
upload of a blob, and some registries then copy the whole blob.
"""
TRIES = 6
_ANY = (200, 401, 403, 404)
"""If the response to ``GET /v2/`` without a login has one of these HTTP statuses, the registry is running."""
_FIRST_TRIES = 3
"""The largest number of tries of the first request to a registry. The number is small, so that toolkit soon
reports a wrong host name.
"""


@dataclass(frozen=True, slots=True)
class RegistryAccess:
    """How toolkit connects to a registry.

    ``ca`` is a file or a folder with certificates that toolkit trusts in addition to the system's
    certificates. ``plain_http`` selects HTTP without TLS. ``pause`` is a function that waits for the given
    number of seconds.
    """

    ca: Path | None = None
    plain_http: bool = False
    pause: Callable[[float], None] = time.sleep


class RegistrySession:
    """Sends requests to the registry of ``name``, and repeats requests to a busy or unreachable registry."""

    def __init__(self, name: RegistryName, access: RegistryAccess) -> None:
        self.host = name.endpoint
        self._pause = access.pause
        self._client = Client(tls_settings(access.ca, self.host))
        self._may_be_plain = access.plain_http or is_loopback(self.host)
        self.base = f"{'http' if access.plain_http else 'https'}://{self.host}"
        self._tokens = Tokens(self._client, self.host, find_login(name.host), may_be_plain=self._may_be_plain)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def find(self) -> None:
        """Check that the registry answers. If the registry is on this machine and does not use TLS, switch to
        plain HTTP.

        Raises:
            Missing: if no registry answers, or toolkit does not trust the registry's certificate.
        """
        try:
            self.ask("GET", "/v2/", statuses=_ANY, tries=_FIRST_TRIES).close()
        except Missing as error:
            if not (is_plain(error.__cause__) and self._may_be_plain and self.base.startswith("https")):
                raise
            self.base = f"http://{self.host}"
            self.ask("GET", "/v2/", statuses=_ANY).close()

    def ask(
        self,
        method: str,
        location: str,
        *,
        statuses: tuple[int, ...],
        scope: str = "",
        headers: Mapping[str, str] | None = None,
        tries: int = TRIES,
        data: Any = None,  # noqa: ANN401 - bytes, or a file that requests reads
    ) -> Response:
        """Send a request, and return a response with a status in ``statuses``. ``location`` is a path on the
        registry, or an address. ``scope`` is the scope of the token that the request needs.

        For a request that sends bytes of a blob, the caller passes ``tries=1``. After an error, the caller
        asks the registry how many bytes arrived, and sends only the remaining bytes.

        Raises:
            Missing: if the registry is unreachable, refuses access, or stays busy.
            CheckFailed: if the registry answers with an unexpected HTTP status, or redirects to an address
                that toolkit refuses.
        """
        import requests

        url = self.absolute(location)
        for number in range(1, tries + 1):
            try:
                answer = self._send(method, url, scope, headers or {}, data=data)
            except (requests.exceptions.RequestException, OSError) as error:
                if number < tries and _may_pass(error):
                    self._pause(pause_before(number))
                    continue
                raise unreachable_error(self.host, error) from error
            if answer.status_code in statuses:
                return answer
            if answer.status_code in BUSY and number < tries:
                self._pause(pause_before(number, answer.headers.get("Retry-After", "")))
                answer.close()
                continue
            with answer:
                raise self._refusal(answer, scope)
        raise AssertionError("the last try returns a response or raises an error")

    def wait(self, seconds: float) -> None:
        """Wait before the caller repeats a failed request or transfer."""
        self._pause(seconds)

    def absolute(self, location: str) -> str:
        """Return the absolute address for a path on the registry, or for an address that the registry sent.
        The returned address may be on another host.

        Raises:
            CheckFailed: if the address is invalid, or leads from TLS to plain HTTP.
        """
        try:
            url = urljoin(f"{self.base}/", location)
            scheme = urlsplit(url).scheme
        except ValueError as error:
            raise CheckFailed(
                f"{self.host} redirects to {without_login(location)[:80]!r}, which is not a valid address"
            ) from error
        if scheme not in {"https", urlsplit(self.base).scheme}:
            raise CheckFailed(
                f"{self.host} redirects to {without_login(url)[:80]!r}, which is not protected by TLS"
            )
        return url

    def _refusal(self, answer: Response, scope: str) -> Missing | CheckFailed:
        words = error_words(answer)
        if answer.status_code in {401, 403} and self._is_ours(answer.url) and self._tokens.has_granted(scope):
            return permission_error(self.host, scope, words, self._tokens.user)
        return refusal_error(self.host, answer.status_code, words, self._tokens.source)

    def _is_ours(self, url: str) -> bool:
        return urlsplit(url).netloc == urlsplit(self.base).netloc

    def _send(
        self,
        method: str,
        url: str,
        scope: str,
        headers: Mapping[str, str],
        *,
        data: Any,  # noqa: ANN401 - bytes or a file
    ) -> Response:
        limits = _COMMIT if method == "PUT" else Limits()

        def proof(address: str) -> Proof:
            # Send the login only to this registry. A presigned address on another host needs no login.
            return self._tokens.proof(scope) if self._is_ours(address) else prove_nothing(address)

        def once() -> Response:
            return self._client.request(method, url, headers=headers, data=data, proof=proof, limits=limits)

        answer = once()
        # Log in only to this registry: a redirect's target must not choose who gets the user's password.
        if answer.status_code == 401 and scope and self._is_ours(answer.url):
            answer.close()
            if self._tokens.answer(answer.headers.get("WWW-Authenticate", ""), scope):
                if hasattr(data, "seek"):
                    data.seek(0)
                answer = once()
        return answer


@contextmanager
def open_session(name: RegistryName, access: RegistryAccess) -> Iterator[RegistrySession]:
    """Open a session with the registry of ``name``, after a check that the registry answers."""
    session = RegistrySession(name, access)
    try:
        session.find()
        yield session
    finally:
        session.close()


def _may_pass(error: Exception) -> bool:
    """Return whether a retry may succeed after this error, for example after an interrupted
    TLS connection.
    """
    import requests

    if broken_limit(error):
        return False
    if isinstance(error, requests.exceptions.SSLError):
        return not is_plain(error) and not is_distrusted(error)
    lasting = (
        requests.exceptions.InvalidURL,
        requests.exceptions.InvalidSchema,
        requests.exceptions.ContentDecodingError,
    )
    return isinstance(error, requests.exceptions.RequestException) and not isinstance(error, lasting)
