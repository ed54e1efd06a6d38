"""Settings of this machine that a build uses: certificates, proxies and pip's settings.

Only the build stage of the Dockerfile gets the proxies and certificates. The final image contains neither
proxies nor certificates.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

_CERTIFICATES = ("PIP_CERT", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")
SYSTEM = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
)
"""The files with the machine's trusted certificates: the first on Debian and Arch, the second on Fedora and
Red Hat, the third on openSUSE.
"""

_PIP = ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_TRUSTED_HOST", "PIP_DEFAULT_TIMEOUT", "PIP_RETRIES")
_PIP_PLACES = ("PIP_FIND_LINKS",)
"""pip's environment variables whose value may be an address or a folder on this machine. toolkit passes an
address to the build. toolkit does not pass a folder, because a build cannot read this machine's folders.
"""

_PROXIES = ("http_proxy", "https_proxy", "ftp_proxy", "no_proxy")
"""Docker's predefined build arguments for proxies, which do not affect the build cache."""


def certificates(env: Mapping[str, str], system: Sequence[str] = SYSTEM) -> bytes | None:
    """Return the certificates that programs on this machine trust. Return ``None`` if toolkit finds
    no file with certificates.

    The function reads the first file that exists. It tries ``PIP_CERT``, ``SSL_CERT_FILE`` and
    ``REQUESTS_CA_BUNDLE`` in ``env`` first, and then the files in ``system``.
    """
    named = (env.get(variable, "") for variable in _CERTIFICATES)
    paths = (Path(file) for file in (*named, *system) if file)
    return next((file.read_bytes() for file in paths if file.is_file()), None)


def pip_settings(env: Mapping[str, str]) -> dict[str, str]:
    """Return pip's environment variables whose values are also valid inside a build, such as addresses of
    indexes.
    """
    settings = {name: env[name] for name in _PIP if env.get(name)}
    settings |= {name: env[name] for name in _PIP_PLACES if "://" in env.get(name, "")}
    return settings


def proxies(env: Mapping[str, str]) -> dict[str, str]:
    """Return the proxy variables that ``env`` sets, whether their names are in lower or in upper case."""
    names = [spelling for name in _PROXIES for spelling in (name, name.upper())]
    return {name: env[name] for name in names if env.get(name)}
