"""The format of a bundle: its list of hashes, its index, and the file names that it may contain."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from toolkit.decoding import DECODE_ERRORS
from toolkit.errors import BadInput
from toolkit.image.locks.lock import SUFFIX
from toolkit.image.locks.recipe import NAME as RECIPE_NAME

SUMS = "SHA256SUMS"
INDEX = "bundle.json"
INSTALL = "install.sh"
MOST_TEXT = 16 << 20
"""Maximum size in bytes of each text file in a bundle: the list of hashes, the index, a recipe or a lock. The
largest lock that toolkit ships has 0.2 MB."""
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+~:%@=-]{0,254}")
"""The syntax of a file name in a bundle. A name has at most 255 bytes, because most Linux file systems allow
no longer names.
"""
_PATH = re.compile(
    rf"{re.escape(INDEX)}|{re.escape(INSTALL)}"
    rf"|files/(?P<digest>[0-9a-f]{{64}})/{NAME.pattern}"
    rf"|(?:images|sif|wheels)/{NAME.pattern}"
    rf"|recipes/{RECIPE_NAME.pattern}(?:\.toml|{re.escape(SUFFIX)}(?:\.asc)?)"
)
_LONGEST_PATH = 400
_LONGEST_VALUE = 260
"""Maximum number of characters of a value in the index: enough for ``sif/`` and a name of 255 characters."""
_LINE = re.compile(r"([0-9a-f]{64})  (.+)")
_MOST_FILES = 20_000
"""Maximum number of files in a bundle; a bundle of one recipe has about 400 files."""
_NOT_A_BUNDLE = "give a file that `toolkit image bundle` wrote"


class BundledImage(msgspec.Struct, frozen=True, kw_only=True):
    """A Docker image in a bundle: its name, its id, and the path of its archive in the bundle.

    ``id`` is the id in the Docker engine that saved the image. After a different Docker engine loads the
    archive, the image may have a different id.
    """

    name: str
    id: str
    path: str


class Index(msgspec.Struct, frozen=True, kw_only=True):
    """The contents of ``bundle.json``; all paths are paths in the bundle.

    ``toolkit`` is the release of toolkit that wrote the bundle. ``pythons`` and ``machine`` are the Python
    releases and the processor type of the bundle's wheels.
    """

    schema: str = "toolkit.bundle/1"
    toolkit: str
    pythons: tuple[str, ...]
    machine: str
    recipes: tuple[str, ...]
    images: tuple[BundledImage, ...]
    sifs: tuple[str, ...]


def read_sums(text: bytes, source: Path) -> dict[str, str]:
    """Parse ``text``, the list of hashes in the bundle ``source``. Return the SHA-256 of each file, by the
    file's path.

    Raises:
        BadInput: if the text is not a list of hashes, or contains an invalid path.
    """
    lines = text.decode("utf-8", "replace").splitlines()
    if len(lines) > _MOST_FILES:
        raise BadInput(f"{source}: {SUMS} lists {len(lines)} files; a bundle has at most {_MOST_FILES}")
    sums: dict[str, str] = {}
    folded = set()
    for line in lines:
        match = _LINE.fullmatch(line)
        path = match and is_path(match[2])
        if not match or not path:
            raise BadInput(
                f"{source}: {SUMS}: the line {line[:120]!r} has no SHA-256, or its file name is not allowed "
                "in a bundle"
            )
        if (path["digest"] or match[1]) != match[1]:
            raise BadInput(f"{source}: {SUMS}: the folder name in {match[2]} is not the file's SHA-256")
        # On some file systems, two names that differ only in upper and lower case are the same file.
        if match[2].casefold() in folded:
            raise BadInput(f"{source}: {SUMS} names {match[2]} twice (upper and lower case count as equal)")
        folded.add(match[2].casefold())
        sums[match[2]] = match[1]
    if INDEX not in sums:
        raise BadInput(f"{source}: {SUMS} does not name {INDEX}", fix=_NOT_A_BUNDLE)
    return sums


def is_path(name: str) -> re.Match[str] | None:
    """Return the match of ``_PATH`` if ``name`` is a valid path in a bundle; None if the path is invalid."""
    return _PATH.fullmatch(name) if len(name) <= _LONGEST_PATH else None


_FIELDS = {
    "toolkit": re.compile(r"[0-9A-Za-z][0-9A-Za-z.+_-]{0,63}"),
    "machine": re.compile(r"[0-9A-Za-z_]{1,32}"),
    "pythons": re.compile(r"\d\.\d{1,2}"),
    "recipes": RECIPE_NAME,
    "sifs": re.compile(rf"sif/{NAME.pattern}"),
    # Accept only the image names that toolkit uses. A bundle then cannot replace the user's own Docker
    # images.
    "images.name": re.compile(r"toolkit-(?:base|builder):[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}"),
    "images.id": re.compile(r"sha256:[0-9a-f]{64}"),
    "images.path": re.compile(rf"images/{NAME.pattern}"),
}
"""For each field of a bundle's index, a pattern that the field's values must match."""


def read_index(text: bytes, source: Path) -> Index:
    """Parse ``text``, the index of the bundle ``source``, and check its values.

    Raises:
        BadInput: if the index is invalid, or has a schema that this toolkit does not read.
    """
    try:
        index = msgspec.json.decode(text, type=Index)
    except DECODE_ERRORS as error:
        raise BadInput(f"{source}: {INDEX} cannot be read: {error}") from error
    if index.schema != Index(toolkit="", pythons=(), machine="", recipes=(), images=(), sifs=()).schema:
        raise BadInput(
            f"{source}: {INDEX} has the schema {index.schema[:80]!r}; this toolkit reads toolkit.bundle/1"
        )
    for field, value in _values(index):
        if len(value) > _LONGEST_VALUE or not _FIELDS[field].fullmatch(value):
            raise BadInput(f"{source}: {INDEX}: {field}: {value[:120]!r} is not a valid value")
    return index


def _values(index: Index) -> Iterator[tuple[str, str]]:
    yield "toolkit", index.toolkit
    yield "machine", index.machine
    for field in ("pythons", "recipes", "sifs"):
        yield from ((field, value) for value in getattr(index, field))
    for image in index.images:
        yield from ((f"images.{field}", getattr(image, field)) for field in ("name", "id", "path"))


def require_listed(index: Index, sums: Mapping[str, str], source: Path) -> None:
    """Check that the index and the list of hashes name the same recipes, images and SIF files.

    Raises:
        BadInput: if only the index or only the list of hashes names a file; the message has the first such
            file in alphabetical order.
    """
    needed = {
        *(f"recipes/{name}{ending}" for name in index.recipes for ending in (".toml", SUFFIX)),
        *(image.path for image in index.images),
        *index.sifs,
    }
    allowed = {f"recipes/{name}{SUFFIX}.asc" for name in index.recipes}
    allowed |= {f"{name}.sha256" for name in index.sifs}
    for path in sorted(needed - sums.keys()):
        raise BadInput(
            f"{source}: {INDEX} names {path}, but {SUMS} does not",
            fix="make the bundle again: `toolkit image bundle`",
        )
    listed = {path for path in sums if path.startswith(("recipes/", "images/", "sif/"))}
    for path in sorted(listed - needed - allowed):
        raise BadInput(
            f"{source}: {SUMS} names {path}, but {INDEX} does not",
            fix="make the bundle again: `toolkit image bundle`",
        )
