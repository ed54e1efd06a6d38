"""Read the patches in ``recipes/patches``, which toolkit applies to the source code of components."""

import hashlib

from toolkit import data
from toolkit.errors import BadInput
from toolkit.model.lock import Lock


def patch_sha256(name: str) -> str:
    """Return the SHA-256 of a patch in ``recipes/patches``."""
    return hashlib.sha256(_read(name)).hexdigest()


def patches_of(lock: Lock) -> dict[str, bytes]:
    """Return the content of each patch of a lock, by file name.

    Raises:
        BadInput: if ``recipes/patches`` does not contain a patch, or contains a patch whose hash differs from
            the hash in the lock.
    """
    contents: dict[str, bytes] = {}
    for step in lock.steps:
        for name, digest in step.patches.items():
            content = _read(name) if (data.shipped_folder("recipes") / "patches" / name).is_file() else b""
            if hashlib.sha256(content).hexdigest() != digest:
                raise BadInput(
                    f"{lock.recipe}: toolkit has no patch {name} with the SHA-256 that the lock states",
                    fix=f"lock the recipe again: `toolkit image lock {lock.recipe} --upgrade`",
                )
            contents[name] = content
    return contents


def _read(name: str) -> bytes:
    return (data.shipped_folder("recipes") / "patches" / name).read_bytes()
