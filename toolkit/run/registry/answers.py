"""Convert error responses of a registry, and network failures, to exceptions of toolkit."""

from typing import TYPE_CHECKING

import msgspec

from toolkit.decoding import DECODE_ERRORS
from toolkit.errors import CheckFailed, Missing
from toolkit.run.registry.challenge import read_challenges
from toolkit.run.web.limits import broken_limit

if TYPE_CHECKING:
    from toolkit.run.web.client import Response

BUSY = frozenset({429, 500, 502, 503, 504})
"""HTTP statuses with which a busy registry answers. A later retry may succeed."""
_MOST = 1 << 16
"""The largest number of bytes of an error message that toolkit reads."""
_NOT_TLS = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "SSL:_HTTP_REQUEST")
"""OpenSSL's names of the errors that occur if a server answers in plain HTTP instead of TLS."""


class _Error(msgspec.Struct, frozen=True):
    code: str = ""
    message: str = ""


class _Errors(msgspec.Struct, frozen=True):
    errors: list[_Error] = []


def error_words(answer: "Response") -> str:
    """Return a registry's error message on one line, or an empty string if the response has no error message.

    The message comes from the body. If the body has no message, as after a HEAD request, the message comes
    from the header ``WWW-Authenticate``.
    """
    try:
        content = msgspec.json.decode(answer.read(_MOST), type=_Errors)
    except (*DECODE_ERRORS, OSError):
        content = _Errors()
    challenges = read_challenges(answer.headers.get("WWW-Authenticate", ""))
    words = "; ".join(": ".join(filter(None, (e.code, e.message))) for e in content.errors[:3])
    words = words or "; ".join(c.parameters["error"] for c in challenges if "error" in c.parameters)
    return "".join(c if c.isprintable() else " " for c in words)[:300]


def refusal_error(host: str, status: int, words: str, source: str) -> Missing | CheckFailed:
    """Return the exception to raise for a request to which ``host`` answers with the HTTP error ``status``.

    ``words`` is the registry's error message. ``source`` names the login file or the credential helper from
    which the user's login comes. ``source`` is empty if toolkit found no login.
    """
    reason = f": {words}" if words else ""
    if status == 401 and source:
        return Missing(
            f"{host} does not accept the user and password from {source}",
            fix=f"log in again: `docker login {host}`",
        )
    if status == 401:
        return Missing(
            f"{host} requires a login, but toolkit found no login for this registry",
            fix=f"log in: `docker login {host}`",
        )
    if status == 403:
        return Missing(
            f"{host} denies access{reason}",
            fix=f"ask the operators of the registry for access; to log in as another user: `docker login "
            f"{host}`",
        )
    if status in BUSY:
        return Missing(
            f"the registry {host} answers with HTTP status {status} repeatedly{reason}",
            fix="run the same command again later to resume the transfer",
        )
    return CheckFailed(f"the registry {host} answers with HTTP status {status}{reason}")


def permission_error(host: str, scope: str, words: str, user: str) -> Missing:
    """Return the exception to raise if the user lacks a permission or the image does not exist. Many
    registries send the same response in both cases.

    ``scope`` is the scope of the token that the request needs: a repository and the permitted actions.
    ``words`` is the registry's error message. ``user`` is the user's name, or an empty string if toolkit
    found no login.
    """
    kind, _, rest = scope.partition(" ")[0].partition(":")
    repository, _, actions = rest.partition(":")
    where = f"{host}/{repository}" if kind == "repository" else host
    verb = "write" if "push" in actions else "read"
    may = f"{user} cannot {verb} it" if user else f"a login is needed to {verb} it"
    return Missing(
        f"{where}: no such image, or {may}{f': {words}' if words else ''}",
        fix=f"check the name, or ask the owner of the image for access; to log in as another user: `docker "
        f"login {host}`",
    )


def unreachable_error(host: str, error: Exception) -> Missing:
    """Return the exception to raise if the network failure ``error`` interrupts a request to ``host``."""
    import requests

    if is_distrusted(error):
        why = str(error).partition("certificate verify failed: ")[2].partition(" (_ssl")[0]
        return Missing(
            f"{host}: toolkit refuses the certificate: {why[:120] or 'it is not trusted'}",
            fix="if a private CA issued the certificate, give the CA's own certificate: `--ca FILE`, or "
            "set SSL_CERT_FILE=FILE",
        )
    if is_plain(error):
        return Missing(
            f"{host} does not support TLS",
            fix="for plain HTTP in a network that you trust, give `--plain-http`",
        )
    if limit := broken_limit(error):
        why = str(limit)
    elif isinstance(error, requests.exceptions.ContentDecodingError):
        why = "its answer cannot be decompressed"
    elif isinstance(error, requests.exceptions.Timeout):
        why = "no answer in time"
    elif "NameResolution" in repr(error) or "Name or service not known" in str(error):
        why = "no such host"
    elif "refused" in str(error):
        why = "no server listens there"
    else:
        why = "the connection was interrupted"
    return Missing(
        f"{host} cannot be reached: {why}",
        fix=f"check the name {host}, and whether the host is up; then run the same command again to "
        "resume the transfer",
    )


def is_distrusted(error: BaseException | None) -> bool:
    """Return whether the error says that toolkit refused the server's certificate."""
    return "CERTIFICATE_VERIFY_FAILED" in str(error)


def is_plain(error: BaseException | None) -> bool:
    """Return whether the error says that the server answers in plain HTTP instead of TLS."""
    text = str(error).upper().replace(" ", "_")
    return any(word in text for word in _NOT_TLS)
