"""Test damaged and hostile bundles: toolkit refuses them with one line, or writes only inside its folders."""

import os
import random
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from unittest.mock import patch

from tests.fuzz import damage
from tests.fuzz.kind import Kind
from tests.unit.image.bundles import (
    INDEX,
    SUMS,
    Member,
    contents,
    escape,
    members,
    packed,
    plain,
    special,
    sums,
)
from toolkit.errors import ToolkitError
from toolkit.image.transfer.unbundle import unbundle
from toolkit.model.progress import Silent

_OUTSIDE = "home/written"
"""A path outside toolkit's folders, which no bundle may write."""
_FORMS = (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT)
_TYPES = b"0123456789gxLKSVZ"


def read(path: Path, number: int) -> str:
    """Run unbundle in a temporary home folder; an error must have exit code 2 and leave no file."""
    with _home() as home:
        try:
            unbundle(path, _no_engine, Silent(), replace=bool(number % 2))
        except ToolkitError as error:
            if error.code != 2 or _files(home):
                raise AssertionError(f"exit code {error.code}, left behind: {_files(home)}") from error
            raise
        strange = [name for name in _files(home) if not name.startswith(("cache/files/", "toolkit/recipes/"))]
        if strange:
            raise AssertionError(f"installed outside the cache and the recipes: {strange}")
    return "installed"


def _no_engine() -> None:
    return None


@contextmanager
def _home() -> Iterator[Path]:
    cache = os.environ.get("TOOLKIT_CACHE_DIR")
    with tempfile.TemporaryDirectory(dir=cache, prefix="home.") as folder:
        places = {"TOOLKIT_CACHE_DIR": f"{folder}/cache", "XDG_CONFIG_HOME": folder}
        with patch.dict(os.environ, places):
            yield Path(folder)


def _files(home: Path) -> list[str]:
    return [str(path.relative_to(home)) for path in home.rglob("*") if not path.is_dir() or path.is_symlink()]


@cache
def _sound() -> dict[str, bytes]:
    return contents()


def _bytes(chance: random.Random, _: Path) -> bytes:
    return damage.bytewise(packed(members(_sound())), chance, packed(escape(f"../../../../{_OUTSIDE}")))


def _headers(chance: random.Random, _: Path) -> bytes:
    return damage.tar_headers(packed(members(_sound()), chance.choice(_FORMS[1:])), chance)


def _values(chance: random.Random, _: Path) -> bytes:
    """Return a bundle with a damaged SHA256SUMS, or with one other damaged file and matching hashes."""
    files = dict(_sound())
    name = chance.choice([INDEX, SUMS, "recipes/mine.lock.json", "recipes/mine.toml"])
    if name == SUMS:
        return packed([plain(SUMS, damage.bytewise(sums(files), chance)), *members(files)[1:]])
    wise = damage.jsonwise if not name.endswith(".toml") and chance.random() < 0.8 else damage.bytewise
    files[name] = wise(files[name], chance)
    return packed(members(files))


def _members(chance: random.Random, _: Path) -> bytes:
    """Return a bundle with extra members, missing members, or members in another order."""
    files = dict(_sound())
    if chance.random() < 0.3:
        files[_name(chance)] = b"x"
    found = members(files)
    for _ in range(chance.randint(0, 3)):
        found.insert(chance.randint(0, len(found)), _member(chance))
    if chance.random() < 0.2:
        del found[chance.randrange(len(found))]
    if chance.random() < 0.1:
        chance.shuffle(found)
    if chance.random() < 0.1:
        at = chance.randint(0, len(found))
        found[at:at] = escape(f"{_up(chance)}{_OUTSIDE}")
    return packed(found, chance.choice(_FORMS[1:]))


def _member(chance: random.Random) -> Member:
    if chance.random() < 0.4:
        kind = bytes([chance.choice(_TYPES)])
        return special(_name(chance), kind, _name(chance)) if kind not in b"xgLK" else _override(chance)
    return plain(_name(chance), chance.randbytes(chance.choice((0, 1, 600))))


def _override(chance: random.Random) -> Member:
    key = chance.choice(("path", "linkpath", "size", "GNU.sparse.name", "GNU.sparse.realsize"))
    value = chance.choice((_name(chance), "9" * 14, "-1", ""))
    return plain(chance.choice(list(_sound())), b"x", pax_headers={key: value})


def _name(chance: random.Random) -> str:
    below = chance.choice(("", "files/", "recipes/", "wheels/", "images/", "sif/", f"files/{'0' * 64}/"))
    return chance.choice(
        (
            *(f"{_up(chance)}{_OUTSIDE}", f"{below}{_up(chance)}{_OUTSIDE}", f"{below}a", f"{below}a.toml"),
            *(chance.choice(list(_sound())), chance.choice(list(_sound())).upper(), f"{below}\x1b[2J\n"),
            *(
                "/dev/null",
                SUMS,
                INDEX,
                f"{below}{'a' * 5000}",
                f"{below}\udcff",
                "recipes/tf2.15-cpu.toml",
                ".",
            ),
        )
    )


def _up(chance: random.Random) -> str:
    return "../" * chance.randint(1, 6)


KINDS: tuple[Kind, ...] = (
    Kind("bundle, bytes", 4, _bytes, read),
    Kind("bundle, headers", 3, _headers, read),
    Kind("bundle, members", 6, _members, read),
    Kind("bundle, values", 5, _values, read),
)
