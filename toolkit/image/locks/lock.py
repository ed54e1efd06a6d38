"""Find, read, check, compare and write the locks of recipes."""

import os
import re
from collections.abc import Collection, Iterator, Mapping
from itertools import islice
from pathlib import Path

import msgspec

from toolkit import data
from toolkit.ambient import require_trusted
from toolkit.decoding import DECODE_ERRORS
from toolkit.errors import BadInput, CheckFailed, Missing
from toolkit.files import read_given, write_whole
from toolkit.image.locks.origins import hosts_of, require_accepted
from toolkit.image.locks.recipe import NamedRecipe, recipe_sha256
from toolkit.model import lock_grammar
from toolkit.model.lock import SCHEMA, Lock, LockedFile, encode_lock
from toolkit.model.recipe import Recipe
from toolkit.run.docker.mirrors import MIRROR

SUFFIX = ".lock.json"
MOST_LOCK = 32 << 20
"""Maximum size in bytes of a lock that toolkit reads. A shipped lock has 0.2 MB."""
_EARLIER = "toolkit.lock/1"
_SHOWN_FAULTS = 6
_AT = re.compile(r"(?P<what>.*?)(?: - at `(?:key in )?\$\.?(?P<path>.*)`)?", re.DOTALL)
_LONGEST_FAULT = 300


class EarlierLock(BadInput):
    """The error for a lock that an earlier release of toolkit wrote; such a lock has no build steps."""


class _Head(msgspec.Struct):
    """The field ``schema`` of a lock, which toolkit checks before it reads the other fields."""

    schema: str = ""


class LockChange(msgspec.Struct, frozen=True, kw_only=True):
    """A file, build step or environment variable that differs between two locks.

    ``where`` is the part of the locks, such as ``run wheels``. ``old`` is the text in the old lock and
    ``new`` is the text in the new lock: the version of a file, the options of a build step, or the value of a
    variable. The text is empty if the lock does not contain ``name``.
    """

    where: str
    name: str
    old: str
    new: str


def lock_path(name: str) -> Path:
    """Return the path of a recipe's lock, even if the lock does not exist.

    The lock of a user's recipe is in the folder of the recipe. For a shipped recipe, the user's own lock
    (:func:`own_path`) has priority over the shipped lock. If toolkit is installed from a package and ships no
    lock for the recipe, the result is the path of the user's own lock.
    """
    recipe = data.find("recipes", name, ".toml")
    beside = recipe.with_name(recipe.name.removesuffix(".toml") + SUFFIX)
    own = own_path(name)
    if recipe.parent != data.shipped_folder("recipes"):
        return beside
    if own.is_file():
        return own
    installed = "_data" in recipe.parent.parts
    return own if installed and not beside.is_file() else beside


def own_path(name: str) -> Path:
    """Return the path of the user's own lock of a recipe, in the user's configuration folder."""
    return data.config_dir() / "recipes" / (Path(name).name.removesuffix(".toml") + SUFFIX)


def decode_lock(content: bytes, name: str, *, fix: str = "") -> Lock:
    """Parse the text of a lock, check all fields, and return the lock.

    Args:
        content: the lock as JSON.
        name: the lock's file name; error messages begin with this name.
        fix: the hint that the error message shows.

    Raises:
        EarlierLock: if the lock has the schema of an earlier release.
        BadInput: if the content is not a lock, or a field is invalid.
    """
    try:
        if msgspec.json.decode(content, type=_Head).schema == _EARLIER:
            why = f"{name}: schema {_EARLIER} is out of date: it lacks the build steps that {SCHEMA} contains"
            raise EarlierLock(why, fix=fix or f"lock the recipe again: `{lock_command('RECIPE')}`")
        lock = msgspec.json.decode(content, type=Lock)
    except DECODE_ERRORS as error:
        raise BadInput(f"{name}: not a lock: {_shape(error)}", fix=fix) from error
    wrong = tuple(islice(lock_grammar.faults(lock), _SHOWN_FAULTS))
    if wrong:
        raise BadInput(f"{name}: {wrong[0]}", detail=wrong[1:], fix=fix)
    return lock


def load_lock(name: str) -> Lock | None:
    """Return the lock of a recipe, or None if the recipe has no lock.

    Raises:
        BadInput: if the file is not a valid lock.
    """
    file = lock_path(name)
    if not os.path.lexists(file):
        return None
    if file.parent == own_path(name).parent:
        require_trusted(file)
    return decode_lock(
        read_given(file, limit=MOST_LOCK), str(file), fix=f"lock the recipe again: `{lock_command(name)}`"
    )


def fitting_lock(named_recipe: NamedRecipe, reference: str, accepted_hosts: Collection[str] = ()) -> Lock:
    """Check that the lock of a recipe fits the recipe, and return the lock. ``reference`` is the recipe's
    name or path.

    ``accepted_hosts`` are hosts from which the user allows downloads. The mirrors and package indexes in this
    machine's configuration, and the package indexes of the recipe, are always allowed.

    Raises:
        BadInput: if the lock is invalid or out of date, or names files on a host from which the user does not
            allow downloads.
        Missing: if the recipe has no lock.
    """
    lock = load_lock(reference)
    if lock is None:
        raise Missing(f"{reference} has no lock", fix=f"lock the recipe: `{lock_command(reference)}`")
    if why := stale(lock, named_recipe.recipe):
        raise BadInput(
            f"{lock_path(reference)}: {why}",
            fix=f"lock the recipe again: `{lock_command(reference)} --upgrade`",
        )
    require_accepted(
        files_of(lock), str(lock_path(reference)), {*accepted_hosts, *hosts_of(named_recipe.recipe.indexes)}
    )
    return lock


def files_of(lock: Lock) -> tuple[LockedFile, ...]:
    """Return all files of a lock."""
    stages = (lock.build, lock.run)
    return (*lock.base.packages, *(f for s in stages for f in (*s.debian, *s.wheels, *s.sources)))


def stale(lock: Lock, recipe: Recipe) -> str:
    """Return why a lock is out of date, or an empty text if the lock fits the recipe."""
    if lock.recipe_sha256 != recipe_sha256(recipe):
        return "the recipe has changed since it was locked"
    return ""


def lock_command(name: str) -> str:
    """Return the shell command that writes the lock of a recipe."""
    return f"toolkit image lock {name}"


def lock_to_replace(name: str) -> tuple[Lock | None, str]:
    """Return the existing lock that a new lock replaces; if the existing lock is invalid, return None and the
    reason.
    """
    try:
        return load_lock(name), ""
    except BadInput as error:
        return None, error.message


def save_lock(lock: Lock, file: Path) -> None:
    """Write a lock to a file, with an atomic rename, and remove the signature of the old lock.

    Raises:
        CheckFailed: if toolkit cannot write the file, or a package source returned an invalid value.
    """
    if wrong := next(lock_grammar.faults(lock), ""):
        raise CheckFailed(
            f"{file}: not written: {wrong}",
            fix=f"if this error names the field `origin` of a Debian package, set {MIRROR} to the Debian "
            "mirror that offers this package",
        )
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.with_name(f"{file.name}.asc").unlink(missing_ok=True)  # the signature is for the old lock
        write_whole(file, encode_lock(lock))
    except OSError as error:
        raise CheckFailed(
            f"{file} cannot be written: {error.strerror or error}",
            fix="copy the recipe to your own folder, and lock the copy",
        ) from error


def compare_locks(old: Lock, new: Lock) -> tuple[LockChange, ...]:
    """Return the differences between two locks of a recipe, grouped by part, then sorted by name."""
    files = (
        change
        for where, before, after in _stages(old, new)
        for change in _changes_of_files(where, before, after)
    )
    return (
        *files,
        *_changes_of_values("steps", _words(old), _words(new)),
        *_changes_of_values("environment", old.environment, new.environment),
    )


def _words(lock: Lock) -> dict[str, str]:
    return {step.component: " ".join(step.words) for step in lock.steps}


def _changes_of_values(part: str, old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[LockChange]:
    for name in sorted(old.keys() | new.keys()):
        before, after = old.get(name, ""), new.get(name, "")
        if before != after:
            yield LockChange(where=part, name=name, old=before, new=after)


def _shape(error: Exception) -> str:
    """Return a decoder's error message as one line: first the path of the invalid field, then the fault."""
    match = _AT.fullmatch(str(error))
    what, path = (match["what"], match["path"]) if match else (str(error), "")
    text = f"{path}: {what}" if path else what
    return "".join(c if c.isprintable() else "\ufffd" for c in text[:_LONGEST_FAULT])


def _stages(old: Lock, new: Lock) -> Iterator[tuple[str, tuple[LockedFile, ...], tuple[LockedFile, ...]]]:
    yield "base", old.base.packages, new.base.packages
    for where in ("run", "build"):
        before, after = getattr(old, where), getattr(new, where)
        for kind in ("debian", "wheels", "sources"):
            yield f"{where} {kind}", getattr(before, kind), getattr(after, kind)


def _changes_of_files(
    part: str, old: tuple[LockedFile, ...], new: tuple[LockedFile, ...]
) -> Iterator[LockChange]:
    before, after = ({file.name: file for file in files} for files in (old, new))
    for name in sorted(before.keys() | after.keys()):
        old_file, new_file = before.get(name), after.get(name)
        if old_file and new_file and old_file.sha256 == new_file.sha256:
            continue
        versions = (old_file.version if old_file else "", new_file.version if new_file else "")
        yield LockChange(where=part, name=name, old=versions[0], new=versions[1])
