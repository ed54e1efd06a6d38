"""Settings of this machine that a build uses: certificates, proxies, pip's settings.

Only the build stage gets the proxies and certificates. These variables do not stay in the image.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

_CERTIFICATES = ("PIP_CERT", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")
SYSTEM = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
)
"""Where Debian and Arch, Fedora and Red Hat, and openSUSE keep the certificates that the machine trusts."""

_PIP = ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_TRUSTED_HOST", "PIP_DEFAULT_TIMEOUT", "PIP_RETRIES")
_PIP_PLACES = ("PIP_FIND_LINKS",)
"""May name a folder of this machine, which a build cannot read, or an address, which a build can read."""

_PROXIES = ("http_proxy", "https_proxy", "ftp_proxy", "no_proxy")
"""Predefined build arguments of Docker, which do not affect the cache of a step."""


def certificates(env: Mapping[str, str], system: Sequence[str] = SYSTEM) -> bytes | None:
    """Return the certificates that programs of this machine trust: named by variables, or else the system's.

    ``None`` without such files.
    """
    named = (env.get(variable, "") for variable in _CERTIFICATES)
    found = (Path(file) for file in (*named, *system) if file)
    return next((file.read_bytes() for file in found if file.is_file()), None)


def pip_settings(env: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of pip that have the same meaning inside a build."""
    found = {name: env[name] for name in _PIP if env.get(name)}
    found |= {name: env[name] for name in _PIP_PLACES if "://" in env.get(name, "")}
    return found


def proxies(env: Mapping[str, str]) -> dict[str, str]:
    """Return the proxies in both spellings, because programs read one or the other."""
    names = [spelling for name in _PROXIES for spelling in (name, name.upper())]
    return {name: env[name] for name in names if env.get(name)}
