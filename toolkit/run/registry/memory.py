"""What was seen of registries, kept in the cache: half-done uploads, and which repository has a blob.

All of it may be lost or wrong at any time: the registry is asked each time, this only says what to ask.
"""

import contextlib
from pathlib import Path
from urllib.parse import quote

import msgspec

from toolkit.data import cache_dir
from toolkit.decoding import UNDECODABLE
from toolkit.files import write_whole

_MOST_REPOSITORIES = 8


class RegistryMemory(msgspec.Struct, frozen=True):
    """``uploads`` maps a repository to where its half-done upload goes on; ``repositories`` have the blob."""

    repositories: tuple[str, ...] = ()
    uploads: dict[str, str] = {}


def recall(host: str, digest: str) -> RegistryMemory:
    """Return what is remembered of a blob; nothing where that cannot be read."""
    try:
        return msgspec.json.decode(_file(host, digest).read_bytes(), type=RegistryMemory)
    except (OSError, *UNDECODABLE):
        return RegistryMemory()


def remember_upload(host: str, digest: str, repository: str, location: str) -> None:
    """Remember where an upload goes on; an empty ``location`` forgets it."""
    seen = recall(host, digest)
    others = {name: where for name, where in seen.uploads.items() if name != repository}
    uploads = {**others, repository: location} if location else others
    _write(host, digest, msgspec.structs.replace(seen, uploads=uploads))


def remember_blob(host: str, digest: str, repository: str) -> None:
    """Remember that a repository has the blob; its upload is over."""
    seen = recall(host, digest)
    names = (repository, *(name for name in seen.repositories if name != repository))
    uploads = {name: where for name, where in seen.uploads.items() if name != repository}
    _write(host, digest, RegistryMemory(names[:_MOST_REPOSITORIES], uploads))


def _file(host: str, digest: str) -> Path:
    return cache_dir() / "registry" / quote(host, safe="") / f"{digest.removeprefix('sha256:')}.json"


def _write(host: str, digest: str, seen: RegistryMemory) -> None:
    """Write for this user alone: an address of an upload may let anybody who has it write to it."""
    file = _file(host, digest)
    # A cache that takes nothing costs a transfer that begins again, and no more.
    with contextlib.suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_whole(file, msgspec.json.encode(seen), 0o600)
