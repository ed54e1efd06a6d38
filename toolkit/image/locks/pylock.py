"""Choose the wheels or source distributions for an image's Python from a ``pylock.toml``."""

import datetime as dt
import tomllib
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from packaging.markers import Environment
from packaging.pylock import Package, PackageSdist, PackageWheel, Pylock
from packaging.tags import Tag, compatible_tags, cpython_tags

from toolkit.errors import CheckFailed
from toolkit.image.locks.origins import of_index
from toolkit.model.lock import LockedFile
from toolkit.model.lock_grammar import address_host

_OLDEST_GLIBC = {"x86_64": 5, "i686": 5}
"""The oldest glibc for which manylinux wheels of an architecture exist: 5 means glibc 2.5. For any
other architecture, the oldest glibc is 2.17.
"""
_LEGACY = {17: "manylinux2014", 12: "manylinux2010", 5: "manylinux1"}

DatedFile = tuple[LockedFile, int]
"""A file, and the time of its upload in Unix seconds; 0 if the time is unknown."""


def wheels_of(
    text: bytes, *, python: str, glibc: str, architecture: str, foreign_hosts: frozenset[str] = frozenset()
) -> tuple[DatedFile, ...]:
    """For each package in a ``pylock.toml`` with the content ``text``, return the wheel that fits the image's
    Python, glibc and architecture.

    If ``text`` does not state the size of a wheel, toolkit reads the size from the wheel's file. If this file
    is not on this machine, the returned size is 0.

    ``python`` is a full version such as 3.11.4. For a wheel on one of ``foreign_hosts``, the returned
    origin is the URL of the wheel. For any other wheel, the origin names the package index.

    Raises:
        CheckFailed: if a package has no wheel for this Python, glibc and architecture.
    """
    lock = Pylock.from_dict(tomllib.loads(text.decode()))
    chosen = lock.select(
        environment=environment(python, architecture), tags=tags(python, glibc, architecture)
    )
    origin = _origin(python)
    return tuple(_wheel(package, file, origin, foreign_hosts) for package, file in chosen)


def sdists_of(text: bytes, *, python: str) -> tuple[DatedFile, ...]:
    """Return the source distribution of each package in a ``pylock.toml`` with the content ``text``.

    Raises:
        CheckFailed: if a package has no source distribution.
    """
    lock = Pylock.from_dict(tomllib.loads(text.decode()))
    return tuple(_sdist(package, _origin(python)) for package in lock.packages)


def environment(python: str, architecture: str) -> Environment:
    """Return the value of each environment marker (PEP 508) in an image with the full Python version
    ``python``, such as 3.11.4, and an architecture such as x86_64.
    """
    return {
        "implementation_name": "cpython",
        "implementation_version": python,
        "os_name": "posix",
        "platform_machine": architecture,
        "platform_python_implementation": "CPython",
        "platform_release": "",
        "platform_system": "Linux",
        "platform_version": "",
        "python_full_version": python,
        "python_version": ".".join(python.split(".")[:2]),
        "sys_platform": "linux",
    }


def tags(python: str, glibc: str, architecture: str) -> list[Tag]:
    """Return the tags of wheels that work with this Python, glibc and architecture, the most specific tag
    first.
    """
    number = (int(python.split(".")[0]), int(python.split(".")[1]))
    platforms = list(_platforms(glibc, architecture))
    interpreter = f"cp{number[0]}{number[1]}"
    return [
        *cpython_tags(number, [interpreter], platforms),
        *compatible_tags(number, interpreter, platforms),
    ]


def _platforms(glibc: str, architecture: str) -> Iterator[str]:
    newest = int(glibc.split(".")[1])
    for minor in range(newest, _OLDEST_GLIBC.get(architecture, 17) - 1, -1):
        yield f"manylinux_2_{minor}_{architecture}"
        if minor in _LEGACY:
            yield f"{_LEGACY[minor]}_{architecture}"
    yield f"linux_{architecture}"


def _origin(python: str) -> str:
    return of_index(".".join(python.split(".")[:2]))


def _wheel(package: Package, file: object, origin: str, foreign_hosts: frozenset[str]) -> DatedFile:
    if not isinstance(file, PackageWheel):
        raise CheckFailed(
            f"{package.name} {package.version} has no wheel for the image's Python, glibc and architecture"
        )
    url = file.url or ""
    return _with_date(package, file, url if address_host(url) in foreign_hosts else origin)


def _sdist(package: Package, origin: str) -> DatedFile:
    if package.sdist is None:
        raise CheckFailed(f"{package.name} {package.version} has no source distribution")
    return _with_date(package, package.sdist, origin)


def _local_size(url: str) -> int:
    """Return the size in bytes of the file at a ``file:`` address. Return 0 for an address with another
    scheme, or if the file does not exist.
    """
    if not url.startswith("file:"):
        return 0
    try:
        return Path(url2pathname(urlsplit(url).path)).stat().st_size
    except OSError:
        return 0


def _with_date(package: Package, file: PackageWheel | PackageSdist, origin: str) -> DatedFile:
    locked = LockedFile(
        name=package.name,
        version=str(package.version),
        file=file.filename,
        origin=origin,
        sha256=file.hashes["sha256"],
        size=file.size or _local_size(file.url or ""),
    )
    return locked, int(file.upload_time.astimezone(dt.UTC).timestamp()) if file.upload_time else 0
