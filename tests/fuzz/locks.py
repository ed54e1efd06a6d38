"""Locks with one hostile field: refused in one line that names the field, or harmless where they go."""

import json
import random
from collections.abc import Iterator
from pathlib import Path

from tests.fuzz.kind import Kind
from tests.unit.image.locks import lock
from toolkit.image.fetch import path_of
from toolkit.image.lock import decode_lock, files_of
from toolkit.model.lock import encoded

HOSTILE = (
    "",
    "../../../../etc/passwd",
    "/etc/passwd",
    "x\nRUN evil",
    "x\r\nRUN evil",
    "x\u2028RUN evil",
    "x\x00y",
    "x\x1b[2J",
    "x\u202ey",
    "--logfile=/etc/passwd",
    "--setup-hook=touch /evil",
    "a,b --x",
    "$(touch evil)",
    "`touch evil`",
    "x; touch evil",
    'x" && touch evil && "',
    "http://evil.example/x.deb",
    "file:///etc/passwd",
    "https://user:password@evil.example/x",
    "debian:pool/../../x",
    "x" * 5000,
    "\u00e9" * 64,
    "F" * 64,
    "0" * 63,
)


def fields(value: object, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield the place of every text and number in a lock."""
    items = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    )
    if items is None:
        yield path
        return
    for name, below in items:
        yield from fields(below, (*path, name))


def with_value(path: tuple[str | int, ...], value: object) -> bytes:
    """Return the JSON of a lock with another value in one place."""
    raw = json.loads(encoded(lock()))
    *above, last = path
    place = raw
    for name in above:
        place = place[name]
    place[last] = value
    return json.dumps(raw).encode()


def read(path: Path, _: int) -> str:
    """Read a lock, and look where its fields would go.

    Raises:
        AssertionError: if a file would lie outside its folder, or a field holds a control character.
    """
    found = decode_lock(path.read_bytes(), "x.lock.json")
    for file in files_of(found):
        there = path_of(file)
        assert there.parent.name == file.sha256, there
        assert there.resolve().parent == there.parent.resolve(), there
    texts = json.loads(encoded(found))
    for place in fields(texts):
        value = texts
        for name in place:
            value = value[name]
        assert not isinstance(value, str) or value.isprintable(), place
    return "lock"


def _hostile(chance: random.Random, _: Path) -> bytes:
    places = list(fields(json.loads(encoded(lock()))))
    value = chance.choice((*HOSTILE, -1, 1 << 70, None, [], {}))
    return with_value(chance.choice(places), value)


KINDS: tuple[Kind, ...] = (Kind("lock, values", 6, _hostile, read, "x.lock.json"),)
