"""Settings of this machine that a build uses: certificates, proxies and pip's settings.

Only the build stage gets the proxies and certificates; the final image contains neither.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

_CERTIFICATES = ("PIP_CERT", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")
SYSTEM = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
)
"""The files with the machine's trusted certificates on Debian and Arch, Fedora and Red Hat, and openSUSE."""

_PIP = ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_TRUSTED_HOST", "PIP_DEFAULT_TIMEOUT", "PIP_RETRIES")
_PIP_PLACES = ("PIP_FIND_LINKS",)
"""pip's environment variables whose value may be an address or a folder of this machine. toolkit does not
pass on a folder, because a build cannot read it.
"""

_PROXIES = ("http_proxy", "https_proxy", "ftp_proxy", "no_proxy")
"""Docker's predefined build arguments for proxies, which do not affect the build cache."""


def certificates(env: Mapping[str, str], system: Sequence[str] = SYSTEM) -> bytes | None:
    """Return the certificates that programs on this machine trust, or ``None``.

    The function reads the first existing file among the files that environment variables name and the files
    in ``system``.
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
    """Return the proxy variables in lower and upper case, because some programs read only one form."""
    names = [spelling for name in _PROXIES for spelling in (name, name.upper())]
    return {name: env[name] for name in names if env.get(name)}
