"""The facts of image files that an earlier command read, kept in the cache folder."""

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
"""The most remembered images, of about 50 kB each."""
_READERS = ("image", "knowledge", "model", "program")
"""Parts of toolkit that decide what is read from an image."""


def facts_of(digest: str, form: str, path: str, view: RankView, read: Callable[[], ImageFacts]) -> ImageFacts:
    """Return the facts of the file with a SHA-256, as an earlier command read them, or from ``read``.

    The facts depend only on the bytes, the view and the code, so a copy of an image has the same facts.
    """
    seen = msgspec.json.encode((digest, form, view, identity(Path(view.env)) if view.env else (), _code()))
    name = hashlib.sha256(seen).hexdigest()
    if kept := hints.recall(_FOLDER, name, ImageFacts):
        return msgspec.structs.replace(kept, path=path)
    facts = read()
    hints.keep(_FOLDER, name, facts, _MOST)
    return facts


@cache
def _code() -> tuple[tuple[str, int, int], ...]:
    """Return size and time of the modules and tables that decide what is read."""
    folders = [*(package() / part for part in _READERS), shipped_folder("recipes") / "knowledge"]
    found = []
    for folder in folders:
        for path in (path for suffix in ("py", "toml") for path in folder.rglob(f"*.{suffix}")):
            status = path.stat()
            found.append((str(path), status.st_size, status.st_mtime_ns))
    return tuple(sorted(found))
