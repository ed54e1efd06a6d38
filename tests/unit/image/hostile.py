"""A shipped lock that tests change, and hostile values for its fields."""

from collections.abc import Iterator
from functools import cache
from typing import Any

from toolkit.data import shipped_folder

RECIPE = "mpi-only"
MARK = "EVIL"
"""Each hostile text contains this word, so tests can search for hostile values that toolkit did not refuse.
"""

HOSTILE: tuple[object, ...] = (
    f"--logfile=/tmp/{MARK}",
    f"-{MARK}",
    f"../../../../{MARK}",
    f"/{MARK}",
    f"a/{MARK}",
    f".{MARK}",
    f"x\nRUN {MARK}",
    f"x\r\nRUN {MARK}",
    f"x\u2028RUN {MARK}",
    f"x\x85RUN {MARK}",
    f"\x1b]0;{MARK}\a",
    f"\u202e{MARK}",
    f"\0{MARK}",
    f"a,b --{MARK}",
    f"$({MARK})",
    f"`{MARK}`",
    f"'; {MARK} #",
    f'"{MARK}',
    f"${{{MARK}}}",
    f"\\{MARK}",
    f"a {MARK}",
    f"{MARK}\n",
    f"\u00fc{MARK}",
    MARK * 4000,
    f"http://127.0.0.1:5333/{MARK}_1_all.deb",
    f"file:///{MARK}",
    f"https://ada:{MARK}@host.example/x.deb",
    f"https://host.example/{MARK}\nx",
    f"debian:pool/../../{MARK}",
    f"debian:/{MARK}",
    f"index:3.11\n{MARK}",
    "",
    -1,
    1 << 70,
    1.5,
    None,
    True,
    [],
    {},
)
"""Hostile values for the fields of a lock. A few values are harmless in some fields."""


@cache
def plain() -> bytes:
    return (shipped_folder("recipes") / f"{RECIPE}.lock.json").read_bytes()


def plain_recipe() -> bytes:
    return (shipped_folder("recipes") / f"{RECIPE}.toml").read_bytes()


def places(value: object, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield the path of each field in a lock; of a list, only the fields of its first entry."""
    if isinstance(value, dict):
        for name in value:
            yield from places(value[name], (*path, name))
    elif isinstance(value, list) and value:
        yield from places(value[0], (*path, 0))
    else:
        yield path


def changed(value: Any, path: tuple[str | int, ...], new: object) -> Any:
    """Return a copy of ``value`` in which the field at ``path`` has the value ``new``."""
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = changed(value[path[0]], path[1:], new)
    return copy
