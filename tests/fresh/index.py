"""Read the list of a project's files from the package index that pip is configured for (PEP 503)."""

import re
from html import unescape
from urllib.parse import unquote, urlsplit

from packaging.utils import canonicalize_name

from toolkit.run.packages.pip_config import pip_places
from toolkit.run.web.http import RefusedRequest, open_address

_PYPI = "https://pypi.org/simple"
_LINK = re.compile(r"""<a\b[^>]*?\bhref\s*=\s*["']([^"']+)["']""", re.IGNORECASE)
_MOST = 64 << 20


def index() -> str:
    return (pip_places().index or _PYPI).rstrip("/")


def files(project: str) -> tuple[str, ...]:
    try:
        with open_address(f"{index()}/{canonicalize_name(project)}/") as body:
            page = b"".join(iter(body.read, b""))
    except RefusedRequest as error:
        if error.status == 404:
            return ()
        raise
    return named(page[:_MOST].decode("utf-8", "replace"))


def named(page: str) -> tuple[str, ...]:
    """Return the file names that a page of an index links."""
    links = (urlsplit(unescape(link)).path for link in _LINK.findall(page))
    return tuple(unquote(path.rpartition("/")[2]) for path in links)
