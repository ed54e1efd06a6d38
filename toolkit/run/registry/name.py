"""The name of an image in a registry: ``docker://HOST[:PORT]/NAME[:TAG][@DIGEST]``.

A name may also start with ``oras://`` instead of ``docker://``.
"""

import ipaddress
import re
from dataclasses import dataclass

from toolkit.errors import BadInput

SCHEMES = ("docker", "oras")

_HUB = "docker.io"
_HUB_ENDPOINT = "registry-1.docker.io"
_HOST = re.compile(
    r"(?P<name>[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?|\[[0-9A-Fa-f:]+\])(?::(?P<port>\d{1,5}))?"
)
_REPOSITORY = re.compile(r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*")
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_LONGEST = 255
"""The largest total length of host and repository, in characters. Many registry clients refuse longer names.

Source: distribution-spec, "Pull".
"""


@dataclass(frozen=True, slots=True)
class RegistryName:
    """The name of an image in a registry. ``tag`` is empty if the image's name has only a digest."""

    scheme: str
    host: str
    repository: str
    tag: str = ""
    digest: str = ""

    @property
    def reference(self) -> str:
        """The reference with which toolkit requests the manifest: the digest if the name has a digest,
        otherwise the tag.
        """
        return self.digest or self.tag

    @property
    def endpoint(self) -> str:
        """The host to which toolkit connects. For Docker Hub, this host differs from the host in the image's
        name.
        """
        return _HUB_ENDPOINT if self.host == _HUB else self.host

    def __str__(self) -> str:
        tag = f":{self.tag}" if self.tag else ""
        return f"{self.scheme}://{self.host}/{self.repository}{tag}{'@' if self.digest else ''}{self.digest}"


def is_registry_name(text: str) -> bool:
    """Return whether a text starts with ``docker://`` or ``oras://``, and so names an image in a registry."""
    return text.startswith(tuple(f"{scheme}://" for scheme in SCHEMES))


def parse_name(text: str) -> RegistryName:
    """Parse the name of an image in a registry. The default tag is ``latest``, and the default registry is
    Docker Hub.

    Raises:
        BadInput: if the name is invalid; the error quotes the invalid part.
    """
    scheme, separator, rest = text.partition("://")
    if not separator or scheme not in SCHEMES:
        raise BadInput(
            f"{text}: not the name of an image in a registry; write docker://HOST/NAME:TAG or oras://HOST/NAME:TAG"
        )
    first, slash, path = rest.partition("/")
    if slash and (first == "localhost" or set(first) & set(".:[")):
        host = _host(text, first)
    else:
        host, path = _HUB, rest if slash else f"library/{rest}"
    path, at, digest = path.partition("@")
    if at and not _DIGEST.fullmatch(digest):
        raise BadInput(f"{text}: {digest!r} is not a digest; write @sha256: and 64 hexadecimal digits")
    repository, colon, tag = path.partition(":")
    if not _REPOSITORY.fullmatch(repository) or len(host) + len(repository) > _LONGEST:
        raise BadInput(
            f"{text}: {repository!r} is not a valid repository name",
            fix="use lower-case letters and digits, with . _ - / between them",
        )
    if colon and not _TAG.fullmatch(tag):
        raise BadInput(
            f"{text}: {tag!r} is not a tag",
            fix="use letters, digits and . _ -, and begin with a letter, a digit or _",
        )
    return RegistryName(scheme, host, repository, tag or ("" if digest else "latest"), digest)


def is_loopback(host: str) -> bool:
    """Return whether ``HOST[:PORT]`` is a loopback address of this machine."""
    name = host.rsplit(":", 1)[0] if not host.endswith("]") else host
    name = name.strip("[]")
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _host(text: str, host: str) -> str:
    match = _HOST.fullmatch(host)
    if not match:
        raise BadInput(f"{text}: {host!r} is not a host; write HOST or HOST:PORT, without user and password")
    if match["port"] and not 0 < int(match["port"]) < 1 << 16:
        raise BadInput(f"{text}: {match['port']} is not a port; ports are 1 to 65535")
    name = host.lower()
    return _HUB if name in {"index.docker.io", _HUB_ENDPOINT} else name
