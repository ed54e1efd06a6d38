"""Write the package URLs (purl-spec) of packages, files and images. Vulnerability scanners identify software
by these URLs.
"""

import re
from urllib.parse import quote

from toolkit.model.lock import LockedFile

_UNQUOTED = ".-_~:"
"""The characters, apart from letters and digits, that purl-spec does not escape."""


def debian(file: LockedFile, base: str) -> str:
    """Return the package URL of a Debian package file in a lock; ``base`` is the distribution with its
    release, such as ``debian:bookworm``.
    """
    distribution, _, release = base.partition(":")
    architecture = file.file.removesuffix(".deb").rpartition("_")[2]
    wanted = f"?arch={_quoted(architecture)}&distro={_quoted(release or distribution)}"
    return f"pkg:deb/{_quoted(distribution)}/{_quoted(file.name)}@{_quoted(file.version)}{wanted}"


def deb(distribution: str, release: str, name: str, version: str) -> str:
    """Return the package URL of an installed Debian package for which toolkit has no package file."""
    distro = f"?distro={_quoted(f'{distribution}-{release}')}" if release else ""
    return f"pkg:deb/{_quoted(distribution)}/{_quoted(name)}@{_quoted(version)}{distro}"


def pypi(file: LockedFile) -> str:
    """Return the package URL, such as ``pkg:pypi/torch@2.1.0``, of a wheel or source archive in a lock."""
    return wheel(file.name, file.version)


def wheel(name: str, version: str) -> str:
    """Return the package URL of a Python package; the URL contains the normalised name, as on PyPI."""
    return f"pkg:pypi/{_quoted(re.sub(r'[-_.]+', '-', name).lower())}@{_quoted(version)}"


def generic(file: LockedFile) -> str:
    """Return the package URL of a source archive, with the archive's SHA-256."""
    return f"pkg:generic/{_quoted(file.name)}@{_quoted(file.version)}?checksum=sha256:{file.sha256}"


def image_purl(reference: str) -> str:
    """Return the package URL of an image such as ``debian@sha256:…``, or an empty text if the image's name
    has no digest.
    """
    name, _, digest = reference.partition("@")
    if not digest:
        return ""
    repository = re.sub(r":[^/:]*$", "", name)
    return f"pkg:oci/{_quoted(repository.rpartition('/')[2].lower())}@{quote(digest, safe='')}"


def _quoted(text: str) -> str:
    return quote(text, safe=_UNQUOTED)
