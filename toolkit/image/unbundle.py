"""Put what a bundle holds in its places: files into the cache, recipes and locks, images into the engine."""

import contextlib
import os
import re
import shutil
import tarfile
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import msgspec

from toolkit.data import cache_dir, config_dir, shipped
from toolkit.decoding import UNDECODABLE
from toolkit.errors import BadInput, CheckFailed
from toolkit.files import read_given
from toolkit.image.bundle import INDEX, NAME, SUMS, BundledImage, Index
from toolkit.image.digest import sha256
from toolkit.image.lock import MOST_LOCK, SUFFIX, decode_lock
from toolkit.image.sif import full_disks
from toolkit.model.progress import Tell
from toolkit.run.folders import in_cache

if TYPE_CHECKING:
    from docker import DockerClient

_PATH = re.compile(rf"{NAME.pattern}(?:/{NAME.pattern})*")
_LINE = re.compile(rf"([0-9a-f]{{64}})  ({_PATH.pattern})")
_MOST = 16 << 20


class Unbundled(msgspec.Struct, frozen=True, kw_only=True):
    """What was put in place; ``waiting`` are images for which no engine answered.

    ``kept`` are the recipes of which the person has another one, or another lock: theirs stays.
    """

    schema: str = "toolkit.unbundled/1"
    source: str
    files: int
    recipes: tuple[str, ...]
    kept: tuple[str, ...] = ()
    images: tuple[str, ...]
    waiting: tuple[str, ...]
    sifs: tuple[str, ...]


def unbundle(source: Path, client: "DockerClient | None", tell: Tell) -> Unbundled:
    """Install a bundle's contents from its archive, or from the folder that it was unpacked into.

    What is there already stays, so that it can be repeated; a person's own recipes and locks do even where
    the bundle has others.

    Raises:
        BadInput: if it is no bundle.
        CheckFailed: if a file is not what the list of the bundle says, or the disk is full.
    """
    with _folder(source, tell) as folder, full_disks(cache_dir()):
        sums = read_sums(_read(folder / SUMS), source)
        _verify(folder / INDEX, sums[INDEX])
        index = read_index(_read(folder / INDEX), source)
        _require_listed(index, sums, source)
        files = [name for name in sums if name.startswith("files/")]
        tell.step(f"Putting {len(files)} files into {cache_dir() / 'files'}")
        for number, name in enumerate(files, 1):
            _place(folder / name, cache_dir() / name, sums[name])
            tell.detail(f"{number} of {len(files)}")
        recipes, kept = _recipes(folder, sums)
        loaded = [_load(client, folder, image, sums, tell) for image in index.images] if client else []
        for name in index.sifs:
            _verify(folder / name, sums[name])
        return Unbundled(
            source=str(source),
            files=len(files),
            recipes=recipes,
            kept=kept,
            images=tuple(loaded),
            waiting=() if client else tuple(image.name for image in index.images),
            sifs=tuple(str(source / name) for name in index.sifs) if source.is_dir() else index.sifs,
        )


def read_sums(text: bytes, source: Path) -> dict[str, str]:
    """Return path → SHA-256 from the list of a bundle.

    Raises:
        BadInput: if it is no such list, or a path leads out of the bundle.
    """
    found = {}
    for line in text.decode("utf-8", "replace").splitlines():
        match = _LINE.fullmatch(line)
        if not match or ".." in match[2].split("/"):
            raise BadInput(f"{source}: {SUMS}: {line[:120]!r} is no line of it")
        found[match[2]] = match[1]
    if INDEX not in found:
        raise BadInput(
            f"{source}: {SUMS} does not name {INDEX}", fix="is it a bundle of toolkit image bundle?"
        )
    return found


def read_index(text: bytes, source: Path) -> Index:
    """Return what a bundle says is in it.

    Raises:
        BadInput: if it is of another schema, damaged, or names what no file or image is called.
    """
    try:
        index = msgspec.json.decode(text, type=Index)
    except UNDECODABLE as error:
        raise BadInput(f"{source}: {INDEX} cannot be read: {error}") from error
    if index.schema != Index(toolkit="", pythons=(), machine="", recipes=(), images=(), sifs=()).schema:
        raise BadInput(f"{source}: it is of {index.schema}, and toolkit.bundle/1 is read")
    for name in (*index.recipes, *(image.name for image in index.images), *_paths(index)):
        if not _PATH.fullmatch(name):
            raise BadInput(f"{source}: {INDEX}: {name[:120]!r} is no name of a file or an image")
    return index


def _paths(index: Index) -> Iterator[str]:
    """Yield the files that an index names, as paths within the bundle."""
    yield from (image.path for image in index.images)
    yield from index.sifs


def _require_listed(index: Index, sums: Mapping[str, str], source: Path) -> None:
    """Refuse, before anything is put in place, an index that names a file whose hash nobody tells."""
    for path in _paths(index):
        if path not in sums:
            raise BadInput(
                f"{source}: {INDEX} names {path}, and {SUMS} does not",
                fix="make the bundle again: toolkit image bundle",
            )


@contextlib.contextmanager
def _folder(source: Path, tell: Tell) -> Iterator[Path]:
    """Lend the folder of a bundle, unpacked below the cache if it is still an archive."""
    if source.is_dir():
        yield source
        return
    kept = in_cache()
    with tempfile.TemporaryDirectory(prefix="unbundle.", dir=kept) as work, full_disks(kept):
        tell.step(f"Unpacking {source.name}")
        try:
            with tarfile.open(source, "r:") as archive:
                archive.extractall(work, filter="data")
        except (tarfile.TarError, EOFError) as error:
            raise BadInput(
                f"{source}: not a bundle: {error}", fix="copy it again, and compare its .sha256"
            ) from error
        except OSError as error:
            if error.filename != str(source):
                raise
            raise BadInput(f"{source}: {error.strerror}") from error
        yield Path(work)


def _read(path: Path) -> bytes:
    try:
        if path.stat().st_size > _MOST:
            raise BadInput(f"{path}: far larger than it should be")
        return path.read_bytes()
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}", fix="is it a bundle of toolkit image bundle?") from error


def _verify(path: Path, digest: str) -> None:
    if not path.is_file() or path.is_symlink() or sha256(path) != digest:
        raise CheckFailed(f"{path}: it is missing, or not what {SUMS} says", fix="copy the bundle again")


def _place(source: Path, target: Path, digest: str) -> None:
    """Copy a file under its name once the copy was seen to be the right one."""
    if target.is_file() and sha256(target) == digest:
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        if not source.is_file() or source.is_symlink():
            raise CheckFailed(f"{source}: it is missing", fix="copy the bundle again")
        shutil.copyfile(source, part)
        _verify(part, digest)
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def _recipes(folder: Path, sums: Mapping[str, str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Put recipes and locks among the person's own where this installation has others.

    Return the files that were placed, and the recipes of which nothing was, as the person has another file.
    """
    names = [name for name in sums if PurePosixPath(name).parent.name == "recipes"]
    for name in names:
        if name.endswith(SUFFIX):
            decode_lock(read_given(folder / name, most=MOST_LOCK), name)
    kept = _others(names, sums)
    placed = []
    for name in names:
        came = shipped("recipes") / PurePosixPath(name).name
        # Beside another recipe a lock would not fit, so that a recipe and its lock are placed together.
        if _recipe(name) not in kept and not (came.is_file() and sha256(came) == sums[name]):
            _place(folder / name, config_dir() / name, sums[name])
            placed.append(PurePosixPath(name).name)
    return tuple(placed), kept


def _others(names: Sequence[str], sums: Mapping[str, str]) -> tuple[str, ...]:
    """Return the recipes of which the person has another file, or a link or folder in its place."""
    own = {name: config_dir() / name for name in names}
    return tuple(
        sorted(
            {
                _recipe(name)
                for name, file in own.items()
                if os.path.lexists(file) and not (file.is_file() and sha256(file) == sums[name])
            }
        )
    )


def _recipe(name: str) -> str:
    return PurePosixPath(name).name.removesuffix(".toml").removesuffix(SUFFIX)


def _load(
    client: "DockerClient", folder: Path, image: BundledImage, sums: Mapping[str, str], tell: Tell
) -> str:
    from toolkit.run.engine_images import load

    _verify(folder / image.path, sums.get(image.path, ""))
    tell.step(f"Loading {image.name} into the Docker engine")
    load(client, folder / image.path, image.id, image.name)
    return image.name
