"""Follow redirects: never from TLS to plain HTTP, never in a circle, and only a few."""

import re
from urllib.parse import urljoin, urlsplit

from toolkit.errors import CheckFailed

MOST_REDIRECTS = 10
"""Redirects of one request; browsers take 20, and no registry is known to need more than two."""

_ANY_METHOD = frozenset({307, 308})
_READING = frozenset({301, 302, 303}) | _ANY_METHOD
"""Statuses that redirect (RFC 9110, section 15.4). Only 307 and 308 keep a method that changes something."""
_LOGIN = re.compile(r"(?<=://)[^/?#\s]*@")


class BadRedirect(CheckFailed):
    """A server redirects to an address that is not followed."""


class Redirects:
    """The addresses to which one request was redirected."""

    def __init__(self, url: str) -> None:
        self._seen = [url]

    def target(self, location: str) -> str:
        """Return the address that ``location`` names, seen from the last address.

        Raises:
            BadRedirect: if it leads from TLS to plain HTTP, in a circle, to no address, or is one redirect
            too many.
        """
        here = self._seen[-1]
        try:
            url = urljoin(here, location)
            old, new = urlsplit(here), urlsplit(url)
        except ValueError as error:
            raise BadRedirect(
                f"{_host(here)} redirects to {_show_url(location)}, which is not an address"
            ) from error
        if new.scheme not in {"http", "https"} or not new.hostname:
            raise BadRedirect(f"{_host(here)} redirects to {_show_url(url)}, which is not an HTTP address")
        if old.scheme == "https" and new.scheme == "http":
            raise BadRedirect(
                f"{_host(here)} redirects to {_show_url(url)}, which is not protected by TLS",
                fix=f"ask the operators of {_host(here)} why; toolkit never follows https to http",
            )
        if url in self._seen:
            raise BadRedirect(f"{_host(here)} redirects in a circle, back to {_show_url(url)}")
        if len(self._seen) > MOST_REDIRECTS:
            raise BadRedirect(f"{_host(self._seen[0])} redirects more than {MOST_REDIRECTS} times")
        self._seen.append(url)
        return url


def is_redirect(method: str, status: int, location: str) -> bool:
    """Return whether an answer to ``method`` is a redirect that can be followed."""
    return bool(location) and status in (_READING if method in {"GET", "HEAD"} else _ANY_METHOD)


def without_login(text: str) -> str:
    """Return a text in which no address has a user and password, so that it may be shown."""
    return _LOGIN.sub("", text)


def _host(url: str) -> str:
    return urlsplit(url).netloc.rpartition("@")[2]


def _show_url(url: str) -> str:
    return repr(without_login(url)[:80])
