"""The lock of a recipe: where it is kept, whether it still fits, and what moved in a new one."""

from collections.abc import Iterator
from pathlib import Path

import msgspec

from toolkit import data
from toolkit.ambient import require_trusted
from toolkit.decoding import UNDECODABLE
from toolkit.errors import BadInput, CheckFailed, Missing
from toolkit.files import write_whole
from toolkit.image.recipe import Named, recipe_sha256
from toolkit.model.lock import Lock, LockedFile, encoded
from toolkit.model.recipe import Recipe

SUFFIX = ".lock.json"
_SCHEMA = "toolkit.lock/1"


class Moved(msgspec.Struct, frozen=True, kw_only=True):
    """One file of a lock that another lock has in another version; empty text where one has none."""

    where: str
    name: str
    old: str
    new: str


def lock_path(name: str) -> Path:
    """Return where the lock of a recipe is, or is to be written: beside the recipe.

    The person's own lock of a shipped recipe goes first. It is also where one is written if toolkit's folder
    is not a checkout that this user may write to.
    """
    recipe = data.find("recipes", name, ".toml")
    beside = recipe.with_name(recipe.name.removesuffix(".toml") + SUFFIX)
    own = own_path(name)
    if recipe.parent != data.shipped("recipes"):
        return beside
    if own.is_file():
        return own
    installed = "_data" in recipe.parent.parts
    return own if installed and not beside.is_file() else beside


def own_path(name: str) -> Path:
    """Return where the person's own lock of a recipe is, which goes before one that came with toolkit."""
    return data.config_dir() / "recipes" / (Path(name).name.removesuffix(".toml") + SUFFIX)


def load_lock(name: str) -> Lock | None:
    """Return the lock of a recipe; ``None`` if it has none.

    Raises:
        BadInput: if the file is no lock.
    """
    file = lock_path(name)
    if file.parent == own_path(name).parent and file.is_file():
        require_trusted(file)
    try:
        return msgspec.json.decode(file.read_bytes(), type=Lock)
    except FileNotFoundError:
        return None
    except UNDECODABLE as error:
        raise BadInput(f"{file}: this is no lock: {error}", fix=mend(name)) from error


def fitting_lock(named: Named, where: str) -> Lock:
    """Return the lock of a recipe that was found under the name or path ``where``.

    Raises:
        BadInput: if it is of another recipe, or no lock.
        Missing: if there is none.
    """
    lock = load_lock(where)
    if lock is None:
        raise Missing(f"{where} has no lock", fix=mend(where))
    if why := stale(lock, named.recipe):
        raise BadInput(f"{lock_path(where)}: {why}", fix=f"{mend(where)} --upgrade")
    return lock


def stale(lock: Lock, recipe: Recipe) -> str:
    """Return why a lock is not that of a recipe; empty text if it is."""
    if lock.schema != _SCHEMA:
        return f"it is of {lock.schema}, and {_SCHEMA} is read"
    if lock.recipe_sha256 != recipe_sha256(recipe):
        return "the recipe has changed since it was locked"
    return ""


def mend(name: str) -> str:
    """Return the command that makes a lock."""
    return f"toolkit image lock {name}"


def lock_to_replace(name: str) -> tuple[Lock | None, str]:
    """Return the lock that a new one is compared with; ``None`` and why, if what is there cannot be read."""
    try:
        return load_lock(name), ""
    except BadInput as error:
        return None, error.message


def save_lock(lock: Lock, file: Path) -> None:
    """Write a lock, or nothing.

    Raises:
        CheckFailed: if the folder takes no file.
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.with_name(f"{file.name}.asc").unlink(missing_ok=True)  # a signature of the old one
        write_whole(file, encoded(lock))
    except OSError as error:
        raise CheckFailed(
            f"{file} cannot be written: {error.strerror or error}",
            fix="copy the recipe to a folder of yours and lock it there",
        ) from error


def moved(old: Lock, new: Lock) -> tuple[Moved, ...]:
    """Return what differs between two locks of a recipe, stage by stage and by name."""
    return tuple(
        found for where, before, after in _stages(old, new) for found in _moved(where, before, after)
    )


def _stages(old: Lock, new: Lock) -> Iterator[tuple[str, tuple[LockedFile, ...], tuple[LockedFile, ...]]]:
    yield "base", old.base.packages, new.base.packages
    for where in ("run", "build"):
        before, after = getattr(old, where), getattr(new, where)
        for kind in ("debian", "wheels", "sources"):
            yield f"{where} {kind}", getattr(before, kind), getattr(after, kind)


def _moved(where: str, old: tuple[LockedFile, ...], new: tuple[LockedFile, ...]) -> Iterator[Moved]:
    before, after = ({file.name: file for file in files} for files in (old, new))
    for name in sorted(before.keys() | after.keys()):
        one, other = before.get(name), after.get(name)
        if one and other and one.sha256 == other.sha256:
            continue
        versions = (one.version if one else "", other.version if other else "")
        yield Moved(where=where, name=name, old=versions[0], new=versions[1])
