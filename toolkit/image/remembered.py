"""Cache the facts of image files, so that a later command does not read the same image again."""

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path

import msgspec

from toolkit import hints
from toolkit.data import package, shipped_folder
from toolkit.image.files.filelock import identity
from toolkit.model.facts import ImageFacts
from toolkit.model.rank import RankView

_FOLDER = "facts"
_MOST = 200
"""The maximum number of cached images; the facts of one image take about 50 kB."""
_READERS = ("image", "knowledge", "model", "program")
"""The packages of toolkit whose code affects the facts of an image."""


def facts_of(digest: str, form: str, path: str, view: RankView, read: Callable[[], ImageFacts]) -> ImageFacts:
    """Return the facts of an image file from the cache. If the cache lacks the facts, call ``read``.

    ``digest`` is the SHA-256 of the image file, and ``form`` is its format. ``view`` has the program
    that a rank runs, and the image's folders that the runtime hides by mounts of host folders. The
    cache key contains these three values and the modification times of toolkit's code. It lacks the image's
    path, so copies of an image share one cache entry.
    """
    key = msgspec.json.encode((digest, form, view, identity(Path(view.env)) if view.env else (), _code()))
    name = hashlib.sha256(key).hexdigest()
    if cached := hints.recall(_FOLDER, name, ImageFacts):
        return msgspec.structs.replace(cached, path=path)
    facts = read()
    hints.keep(_FOLDER, name, facts, _MOST)
    return facts


@cache
def _code() -> tuple[tuple[str, int, int], ...]:
    """Return the path, size and modification time of each toolkit module and table that affects the facts."""
    folders = [*(package() / part for part in _READERS), shipped_folder("recipes") / "knowledge"]
    found = []
    for folder in folders:
        for path in (path for suffix in ("py", "toml") for path in folder.rglob(f"*.{suffix}")):
            status = path.stat()
            found.append((str(path), status.st_size, status.st_mtime_ns))
    return tuple(sorted(found))
