"""Store computed values in the cache folder, so that later commands are faster. toolkit computes a missing or
damaged value again.
"""

import contextlib
from pathlib import Path
from typing import TypeVar

import msgspec

from toolkit.ambient import require_trusted
from toolkit.data import cache_dir
from toolkit.decoding import DECODE_ERRORS
from toolkit.errors import BadInput
from toolkit.files import write_whole

_Value = TypeVar("_Value")

SETTLED_SECONDS = 2.0
"""toolkit caches the hash of a file only if the file last changed more than this number of seconds ago. Two
changes within a shorter time may give the file the same time stamp. Of all file systems, FAT has the coarsest
time stamps: 2 s.
"""


def recall(folder: str, name: str, kind: type[_Value]) -> _Value | None:
    """Return the value with the name ``name`` and the type ``kind`` from a folder of the cache.

    The result is ``None`` if the value is missing or unreadable, or if another user could have written it.
    """
    file = _file(folder, name)
    try:
        require_trusted(file)
        return msgspec.json.decode(file.read_bytes(), type=kind)
    except (OSError, BadInput, *DECODE_ERRORS):
        return None


def keep(folder: str, name: str, value: object, limit: int | None = None) -> None:
    """Write a value into a folder of the cache, as a file that only this user can read. With ``limit``,
    keep only the newest ``limit`` values of the folder, and delete older values.
    """
    file = _file(folder, name)
    with contextlib.suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_whole(file, msgspec.json.encode(value), 0o600)
        if limit is not None:
            entries = sorted(file.parent.glob("*.json"), key=lambda entry: entry.stat().st_mtime)
            for entry in entries[:-limit]:
                entry.unlink(missing_ok=True)


def drop(folder: str) -> None:
    """Delete all values in a folder of the cache."""
    with contextlib.suppress(OSError):
        for entry in _file(folder, "").parent.glob("*.json"):
            entry.unlink(missing_ok=True)


def _file(folder: str, name: str) -> Path:
    return cache_dir() / folder / f"{name}.json"
