"""Record in the cache which uploads are unfinished, and which repositories contain a blob.

A cache entry may be missing or wrong, so toolkit always asks the registry as well.
"""

from urllib.parse import quote

import msgspec

from toolkit import hints

_MOST_REPOSITORIES = 8


class RegistryMemory(msgspec.Struct, frozen=True):
    """What the cache knows about a blob in a registry.

    ``uploads`` maps a repository to the address of an unfinished upload of the blob to this repository.
    ``repositories`` lists repositories that contain the blob.
    """

    repositories: tuple[str, ...] = ()
    uploads: dict[str, str] = {}


def recall(host: str, digest: str) -> RegistryMemory:
    """Return what the cache knows about a blob. The returned object is empty if this machine's cache has no
    readable entry for the blob.
    """
    return hints.recall(_folder(host), _name(digest), RegistryMemory) or RegistryMemory()


def remember_upload(host: str, digest: str, repository: str, location: str) -> None:
    """Store in the cache the address ``location``, at which toolkit can resume the upload of a blob to
    ``repository``. An empty ``location`` removes the stored address.
    """
    memory = recall(host, digest)
    other_uploads = {name: where for name, where in memory.uploads.items() if name != repository}
    uploads = {**other_uploads, repository: location} if location else other_uploads
    _write(host, digest, msgspec.structs.replace(memory, uploads=uploads))


def remember_blob(host: str, digest: str, repository: str) -> None:
    """Store in the cache that a repository contains the blob, and that the upload of the blob is finished."""
    memory = recall(host, digest)
    names = (repository, *(name for name in memory.repositories if name != repository))
    uploads = {name: where for name, where in memory.uploads.items() if name != repository}
    _write(host, digest, RegistryMemory(names[:_MOST_REPOSITORIES], uploads))


def _folder(host: str) -> str:
    return f"registry/{quote(host, safe='')}"


def _name(digest: str) -> str:
    return digest.removeprefix("sha256:")


def _write(host: str, digest: str, memory: RegistryMemory) -> None:
    # Only this user may read the cache file, because an upload's address may grant write access.
    hints.keep(_folder(host), _name(digest), memory)
