"""Collect the certificates that toolkit trusts for a registry: from the system, environment variables and the
user's ``--ca``.
"""

import os
import ssl
from pathlib import Path

from toolkit.data import home
from toolkit.errors import BadInput

_VARIABLES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
"""Environment variables that name certificate files. This list omits ``SSL_CERT_FILE`` and ``SSL_CERT_DIR``,
because Python's ssl already reads these two variables.
"""


def tls_settings(ca: Path | None, host: str) -> ssl.SSLContext:
    """Return the TLS settings for the registry ``host``. ``ca`` is the file or folder that ``--ca`` names.
    toolkit also trusts the certificates in Docker's folder ``certs.d/HOST[:PORT]``.

    Raises:
        BadInput: if a certificate file is missing or invalid.
    """
    context = ssl.create_default_context()
    if ca is not None:
        _add(context, ca, "--ca")
    for variable in _VARIABLES:
        if named := os.environ.get(variable):
            _add(context, Path(named), variable)
    places = [Path("/etc/docker/certs.d")]
    if at_home := home():
        places.append(at_home / ".docker" / "certs.d")
    for folder in (place / host for place in places):
        for file in sorted(folder.glob("*.crt")) if folder.is_dir() else ():
            _add(context, file, str(folder))
    return context


def _add(context: ssl.SSLContext, path: Path, origin: str) -> None:
    try:
        if path.is_dir():
            context.load_verify_locations(capath=path)
        else:
            context.load_verify_locations(cafile=path)
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        why = "no such file" if isinstance(error, FileNotFoundError) else "contains no PEM certificate"
        raise BadInput(f"{origin}: {path}: {why}") from error
