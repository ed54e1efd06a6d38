"""Test that toolkit refuses a lock with hostile values, or writes no hostile value into any file."""

import json
import random
from pathlib import Path

from tests.fuzz import damage
from tests.fuzz.kind import Kind
from tests.unit.image.hostile import HOSTILE, MARK, changed, places, plain
from toolkit.errors import ToolkitError
from toolkit.image.builds.based import context_of_base
from toolkit.image.builds.emit import Making, definition, dockerfile
from toolkit.image.builds.identity import labels
from toolkit.image.locks.fetch import path_of
from toolkit.image.locks.lock import decode_lock, files_of
from toolkit.image.locks.origins import require_accepted


def made(kind: str, chance: random.Random) -> bytes:
    if kind == "lock, bytes":
        return damage.bytewise(plain(), chance)
    if kind == "lock, values":
        return damage.jsonwise(plain(), chance)
    lock = json.loads(plain())
    for path in chance.choices(list(places(lock)), k=chance.choice((1, 1, 1, 2, 5))):
        lock = changed(lock, path, chance.choice(HOSTILE))
    return json.dumps(lock).encode()


def read(content: bytes) -> str:
    """Read a lock and render every file from it; return the result in one word.

    Raises:
        ToolkitError: if toolkit refuses the lock.
        AssertionError: if a rendered file contains a hostile value.
    """
    lock = decode_lock(content, "x.lock.json")
    require_accepted(files_of(lock), "x.lock.json", ())
    making = Making(lock=lock, base=lock.base.published)
    files = {file.sha256: Path("/nonexistent") for file in files_of(lock)}
    base = context_of_base(lock, files)
    texts = [
        dockerfile(making),
        definition(making, labels(making), context="/ctx/", jobs=2),
        *(content.decode() for content in base.values() if isinstance(content, bytes)),
        *base,
        *(str(path_of(file)) for file in files_of(lock)),
    ]
    # The title may contain anything, because it is only in a comment and in a label.
    found = [text for text in texts if MARK in text.replace(lock.title, "")]
    if found:
        raise AssertionError(f"a hostile value is in {found[0][:200]!r}")
    roots = {path_of(file).parent.parent for file in files_of(lock)}
    if len(roots) != 1 or any("/" in name.removeprefix("base/") for name in base):
        raise AssertionError("a file lies outside its folder")
    return "rendered"


def refused(content: bytes) -> str:
    try:
        read(content)
    except ToolkitError as error:
        return error.message
    return ""


def _kind(name: str, weight: float) -> Kind:
    return Kind(
        name,
        weight,
        lambda chance, _: made(name, chance),
        lambda path, _: read(path.read_bytes()),
        "x.lock.json",
    )


KINDS = (_kind("lock, fields", 8), _kind("lock, values", 3), _kind("lock, bytes", 2))
