"""Follow HTTP redirects: never from TLS to plain HTTP, never in a circle, and at most ten redirects."""

import re
from urllib.parse import urljoin, urlsplit

from toolkit.errors import CheckFailed

MOST_REDIRECTS = 10
"""The largest number of redirects that toolkit follows for one request. Browsers follow 20 redirects, and
known container registries need at most two.
"""

_ANY_METHOD = frozenset({307, 308})
_READING = frozenset({301, 302, 303}) | _ANY_METHOD
"""HTTP statuses that mean a redirect (RFC 9110, section 15.4).

After status 307 or 308, a client repeats the request with the same method. After status 301, 302 or 303, a
client may replace POST with GET, so toolkit follows these redirects only for GET and HEAD.
"""
_LOGIN = re.compile(r"(?<=://)[^/?#\s]*@")


class BadRedirect(CheckFailed):
    """A server redirects to an address that toolkit refuses."""


class Redirects:
    """The chain of addresses to which servers redirected one request."""

    def __init__(self, url: str) -> None:
        self._seen = [url]

    def target(self, location: str) -> str:
        """Resolve ``location``, the address in a redirect, relative to the last address of the chain.

        Raises:
            BadRedirect: if the address is invalid, is already in the chain, or leads from TLS to plain HTTP,
                or if the chain already has ten redirects.
        """
        address = self._seen[-1]
        try:
            url = urljoin(address, location)
            old, new = urlsplit(address), urlsplit(url)
        except ValueError as error:
            raise BadRedirect(
                f"{_host(address)} redirects to {_show_url(location)}, which is not a valid URL"
            ) from error
        if new.scheme not in {"http", "https"} or not new.hostname:
            raise BadRedirect(f"{_host(address)} redirects to {_show_url(url)}, which is not an HTTP address")
        if old.scheme == "https" and new.scheme == "http":
            raise BadRedirect(
                f"{_host(address)} redirects to {_show_url(url)}, which is not protected by TLS",
                fix=f"ask the operators of {_host(address)} why; "
                "toolkit never follows a redirect from https to http",
            )
        if url in self._seen:
            raise BadRedirect(f"{_host(address)} redirects in a circle, back to {_show_url(url)}")
        if len(self._seen) > MOST_REDIRECTS:
            raise BadRedirect(f"{_host(self._seen[0])} redirects more than {MOST_REDIRECTS} times")
        self._seen.append(url)
        return url


def is_redirect(method: str, status: int, location: str) -> bool:
    """Return whether a response is a redirect that toolkit may follow. ``method`` is the HTTP method of the
    request.
    """
    return bool(location) and status in (_READING if method in {"GET", "HEAD"} else _ANY_METHOD)


def without_login(text: str) -> str:
    """Return ``text`` without the user names and passwords in its URLs, for use in a message."""
    return _LOGIN.sub("", text)


def _host(url: str) -> str:
    return urlsplit(url).netloc.rpartition("@")[2]


def _show_url(url: str) -> str:
    return repr(without_login(url)[:80])
