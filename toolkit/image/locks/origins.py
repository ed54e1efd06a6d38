"""Where the files of a lock are downloaded from: addresses depend on the site, so a lock contains no
addresses.

``debian:PATH`` and ``debian-security:PATH`` are files of a mirror, ``index:PYTHON`` is a file that the
package index offers to that Python, and anything else is an https address. An address on a host that is
neither a mirror nor the index is foreign: its files are fetched if the user accepts the host.
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
"""The option that accepts a foreign host."""
_NAMED = 8
"""Number of hosts and files that a message names."""


def of_index(python: str) -> str:
    """Return the origin of files that the package index offers to a Python ``version`` such as 3.11."""
    return f"{INDEX}:{python}"


def require_accepted(files: Iterable[LockedFile], where: str, accepted: Collection[str]) -> None:
    """Refuse files from foreign hosts that the user has not accepted.

    Args:
        files: the files of a lock.
        where: the lock, for the message.
        accepted: hosts, with their port if the address has one.

    Raises:
        BadInput: if an origin is not accepted; the message names the hosts and the files.
    """
    foreign: dict[str, list[str]] = defaultdict(list)
    known = {host.lower() for host in accepted} | _known_hosts()
    for file in files:
        if (host := address_host(file.origin)) and host not in known:
            foreign[host].append(file.file)
    if not foreign:
        return
    options = " ".join(f"{ACCEPT} {host}" for host in sorted(foreign))
    raise BadInput(
        f"{where}: names files on {', '.join(sorted(foreign)[:_NAMED])}, which is neither your mirror nor "
        "your package index",
        detail=[f"{host}: {_some(names)}" for host, names in sorted(foreign.items())[:_NAMED]],
        fix=f"if you trust the author of this lock: {options}",
    )


def hosts_of(places: Iterable[str]) -> frozenset[str]:
    """Return the hosts of addresses, in lower case, with their port if the address has one."""
    return frozenset(
        without_login(place).partition("://")[2].partition("/")[0].lower() for place in places
    ) - {""}


def _some(names: Sequence[str]) -> str:
    more = f", and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{', '.join(names[:_NAMED])}{more}"


def _known_hosts() -> set[str]:
    """Return the hosts of the mirrors and the package index that this machine is configured to use."""
    places = [mirror for several in of_machine().values() for mirror in several]
    places += [pip_places().index, *pip_places().indexes]
    return set(hosts_of(places))


def addresses(files: Sequence[LockedFile], mirrors: Mirrors) -> dict[str, tuple[str, ...]]:
    """Return SHA-256 → addresses to try, in this order.

    Raises:
        Missing: if no mirror is known for a file, or the index does not answer.
    """
    found: dict[str, tuple[str, ...]] = {}
    offered: dict[str, list[LockedFile]] = defaultdict(list)
    for file in files:
        scheme, _, rest = file.origin.partition(":")
        if scheme == INDEX:
            offered[rest].append(file)
        elif scheme in ("debian", "debian-security"):
            found[file.sha256] = _on_mirrors(file, scheme, rest, mirrors)
        else:
            found[file.sha256] = (file.origin,)
    for python, group in offered.items():
        found |= _on_index(group, python)
    return found


def _on_mirrors(file: LockedFile, archive: str, path: str, mirrors: Mirrors) -> tuple[str, ...]:
    known = mirrors.get("debian" if archive == "debian" else "debian-security", ())
    if not known:
        raise Missing(
            f"{file.file} is a Debian package, but no Debian mirror is configured on this machine",
            fix=f"set {MIRROR}=URL to a mirror that this machine can reach",
        )
    return tuple(f"{mirror}/{path}" for mirror in known)


def _on_index(files: Sequence[LockedFile], python: str) -> dict[str, tuple[str, ...]]:
    """Ask all indexes together; then ask each index alone for the files that are not among the answers.

    A file that no index offers gets no address.
    """
    there = _offered(files, python, index=None)
    for file in files:
        for index in ("", *pip_places().indexes):
            if file.sha256 not in there:
                with contextlib.suppress(Missing):
                    there |= _offered([file], python, index)
    return {file.sha256: tuple(filter(None, [there.get(file.sha256)])) for file in files}


def _offered(files: Sequence[LockedFile], python: str, index: str | None) -> dict[str, str]:
    """Return SHA-256 → address of each file that an index (or all indexes) has of the files' releases."""
    pins = sorted({f"{file.name}=={file.version}" for file in files})
    try:
        text = wheels.lock_all_files(pins, python=python, index=index)
    except CheckFailed as error:
        raise Missing(
            "the package index does not answer, or does not have the file in the lock",
            detail=error.detail,
            fix="set PIP_INDEX_URL to an index that has the file, or lock again: "
            "`toolkit image lock RECIPE --upgrade`",
        ) from error
    packages = Pylock.from_dict(tomllib.loads(text.decode())).packages
    offers = [file for package in packages for file in (*(package.wheels or ()), package.sdist) if file]
    return {offer.hashes["sha256"]: offer.url for offer in offers if offer.url and "sha256" in offer.hashes}
