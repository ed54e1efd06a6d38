"""What a build takes over from the machine that it runs on: certificates, proxies, pip's settings.

They reach the build stage only. Nothing of them is left in the image.
"""

from collections.abc import Mapping
from pathlib import Path

_CERTIFICATES = ("PIP_CERT", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")
_PIP = ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_TRUSTED_HOST", "PIP_DEFAULT_TIMEOUT", "PIP_RETRIES")
_PIP_PLACES = ("PIP_FIND_LINKS",)
"""May name a folder of this machine, which a build cannot see, or an address, which it can."""

_PROXIES = ("http_proxy", "https_proxy", "ftp_proxy", "no_proxy")
"""Predefined build arguments of Docker: no step sees its cache miss because of them."""


def certificates(env: Mapping[str, str]) -> bytes | None:
    """Return the bundle that this machine's programs are told to trust, if they are told."""
    for variable in _CERTIFICATES:
        if (named := env.get(variable)) and Path(named).is_file():
            return Path(named).read_bytes()
    return None


def pip_settings(env: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of pip that mean the same inside a build."""
    found = {name: env[name] for name in _PIP if env.get(name)}
    found |= {name: env[name] for name in _PIP_PLACES if "://" in env.get(name, "")}
    return found


def proxies(env: Mapping[str, str]) -> dict[str, str]:
    """Return the proxies, in both spellings, as programs differ in which they read."""
    names = [spelling for name in _PROXIES for spelling in (name, name.upper())]
    return {name: env[name] for name in names if env.get(name)}
