"""Find the download addresses of a lock's files.

A lock does not contain addresses of mirrors, because each site has its own mirrors. A lock contains the
origin of each file, from which toolkit finds the addresses of the file.

The origin ``debian:PATH`` or ``debian-security:PATH`` means a file on a Debian mirror. The origin
``index:PYTHON``, such as ``index:3.11``, means a file of the package index for that release of Python. Any
other origin is an https address. The user need not accept the mirrors and package indexes in this
machine's configuration. The user must accept every other host, unless the recipe names this host as a package
index.
"""

import contextlib
import tomllib
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence

from packaging.pylock import Pylock

from toolkit.errors import BadInput, CheckFailed, Missing
from toolkit.model.lock import LockedFile
from toolkit.model.lock_grammar import address_host
from toolkit.run.docker.mirrors import MIRROR, Mirrors, of_machine
from toolkit.run.packages import wheels
from toolkit.run.packages.pip_config import pip_places
from toolkit.run.web.http import without_login

INDEX = "index"
ACCEPT = "--accept-origin"
"""The command-line option with which the user accepts a host."""
_NAMED = 8
"""Maximum number of hosts, and of files, that an error message lists."""


def of_index(python: str) -> str:
    """Return the origin of a file on the package index; ``python`` is a minor release such as 3.11."""
    return f"{INDEX}:{python}"


def require_accepted(files: Iterable[LockedFile], name: str, accepted_hosts: Collection[str]) -> None:
    """Raise an error if a file is on a host that the user has not accepted.

    The mirrors and package indexes in this machine's configuration are always accepted.

    Args:
        files: the files of a lock.
        name: the name of the lock in the error message.
        accepted_hosts: the hosts that the user accepts, each with the port if the address has a port.

    Raises:
        BadInput: if the user has not accepted a host; the message lists such hosts and their files.
    """
    foreign: dict[str, list[str]] = defaultdict(list)
    known = {host.lower() for host in accepted_hosts} | _known_hosts()
    for file in files:
        if (host := address_host(file.origin)) and host not in known:
            foreign[host].append(file.file)
    if not foreign:
        return
    options = " ".join(f"{ACCEPT} {host}" for host in sorted(foreign))
    raise BadInput(
        f"{name}: the lock names files on a host that is neither your mirror nor your package index: "
        f"{', '.join(sorted(foreign)[:_NAMED])}",
        detail=[f"{host}: {_some(names)}" for host, names in sorted(foreign.items())[:_NAMED]],
        fix=f"if you trust the author of this lock, add {options}",
    )


def hosts_of(urls: Iterable[str]) -> frozenset[str]:
    """Return the hosts of addresses in lower case, each with the port if the address has a port."""
    return frozenset(without_login(place).partition("://")[2].partition("/")[0].lower() for place in urls) - {
        ""
    }


def _some(names: Sequence[str]) -> str:
    more = f", and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{', '.join(names[:_NAMED])}{more}"


def _known_hosts() -> set[str]:
    """Return the hosts of the mirrors and of the package index that this machine's configuration names."""
    places = [mirror for several in of_machine().values() for mirror in several]
    places += [pip_places().index, *pip_places().indexes]
    return set(hosts_of(places))


def addresses(files: Sequence[LockedFile], mirrors: Mirrors) -> dict[str, tuple[str, ...]]:
    """Return the addresses of each file by SHA-256, in the order in which toolkit tries them.

    Raises:
        Missing: if a file is a Debian package and no Debian mirror is configured, or if the package index
            does not respond.
    """
    addresses_by_hash: dict[str, tuple[str, ...]] = {}
    offered: dict[str, list[LockedFile]] = defaultdict(list)
    for file in files:
        scheme, _, rest = file.origin.partition(":")
        if scheme == INDEX:
            offered[rest].append(file)
        elif scheme in ("debian", "debian-security"):
            addresses_by_hash[file.sha256] = _on_mirrors(file, scheme, rest, mirrors)
        else:
            addresses_by_hash[file.sha256] = (file.origin,)
    for python, group in offered.items():
        addresses_by_hash |= _on_index(group, python)
    return addresses_by_hash


def _on_mirrors(file: LockedFile, archive: str, path: str, mirrors: Mirrors) -> tuple[str, ...]:
    known = mirrors.get("debian" if archive == "debian" else "debian-security", ())
    if not known:
        raise Missing(
            f"{file.file} is a Debian package, but no Debian mirror is configured on this machine",
            fix=f"set {MIRROR}=URL; URL is a mirror that this machine can reach",
        )
    return tuple(f"{mirror}/{path}" for mirror in known)


def _on_index(files: Sequence[LockedFile], python: str) -> dict[str, tuple[str, ...]]:
    """Return the addresses of files on the package indexes, by SHA-256.

    toolkit first queries all indexes together. For each file that this query does not find, toolkit then
    queries each index alone. A file that no index has gets an empty tuple.
    """
    urls = _offered(files, python, index=None)
    indexes = ("", *pip_places().indexes)
    for file in files:
        for index in indexes:
            if file.sha256 not in urls:
                with contextlib.suppress(Missing):
                    urls |= _offered([file], python, index)
    return {file.sha256: tuple(filter(None, [urls.get(file.sha256)])) for file in files}


def _offered(files: Sequence[LockedFile], python: str, index: str | None) -> dict[str, str]:
    """Look up the package versions of ``files`` in an index, and return the address of each file that the
    index offers, by SHA-256. If ``index`` is None, search all indexes.
    """
    pins = sorted({f"{file.name}=={file.version}" for file in files})
    try:
        text = wheels.lock_all_files(pins, python=python, index=index)
    except CheckFailed as error:
        raise Missing(
            "the package index does not answer, or does not have a file that the lock names",
            detail=error.detail,
            fix="set PIP_INDEX_URL to an index that has the file, or lock again: "
            "`toolkit image lock RECIPE --upgrade`",
        ) from error
    packages = Pylock.from_dict(tomllib.loads(text.decode())).packages
    offers = [file for package in packages for file in (*(package.wheels or ()), package.sdist) if file]
    return {offer.hashes["sha256"]: offer.url for offer in offers if offer.url and "sha256" in offer.hashes}
