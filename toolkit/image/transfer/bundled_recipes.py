"""Check the recipes and locks of a bundle, and install them in the user's folder.

If a recipe with the same name but different content exists, toolkit replaces this recipe only if the user
gives the option ``--replace``.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from toolkit.data import config_dir, shipped_folder
from toolkit.errors import BadInput
from toolkit.files import hash_file
from toolkit.image.locks.lock import SUFFIX, decode_lock, files_of, lock_command, stale
from toolkit.image.locks.recipe import parse
from toolkit.image.transfer.bundle_format import MOST_TEXT
from toolkit.image.transfer.bundle_reader import StagedBundle, install
from toolkit.image.trust.detached import signature_file
from toolkit.model.lock import Lock


def require_recipes(bundle: StagedBundle, source: Path) -> None:
    """Check each recipe and its lock. Check that the folder ``files`` of the bundle contains all files that
    the locks name, and no other files.

    Raises:
        BadInput: if a check fails; the message names the recipe or the file.
    """
    named = set()
    for name in bundle.index.recipes:
        lock = _lock(bundle, name, source)
        named |= {f"files/{file.sha256}/{file.file}" for file in files_of(lock)}
    present = {path for path in bundle.sums if path.startswith("files/")}
    if absent := named - present:
        raise BadInput(
            f"{source}: a lock in the bundle names {min(absent)[:300]!r}, which is missing from the bundle"
        )
    if stray := present - named:
        raise BadInput(f"{source}: the bundle contains {min(stray)}, which no lock in the bundle names")


def _lock(bundle: StagedBundle, name: str, source: Path) -> Lock:
    """Return the lock of the recipe ``name`` in the bundle.

    Raises:
        BadInput: if the recipe or its lock is invalid, or if the lock is out of date.
    """
    place = f"{source}: recipes/{name}{SUFFIX}"
    text, locked = (_content(bundle.files[f"recipes/{name}{e}"], source) for e in (".toml", SUFFIX))
    try:
        recipe = parse(text.decode("utf-8"), f"{source}: recipes/{name}.toml")
    except ValueError as error:
        raise BadInput(f"{source}: recipes/{name}.toml: cannot be read: {_short_text(str(error))}") from error
    lock = decode_lock(
        locked, place, fix=f"lock the recipe again (`{lock_command(name)}`), and make the bundle again"
    )
    if why := stale(lock, recipe):
        raise BadInput(f"{place}: {_short_text(why)}")
    return lock


def _short_text(text: str) -> str:
    """Return the first 200 characters of a text from a bundle, with ``?`` for each unprintable character."""
    return "".join(letter if letter.isprintable() else "?" for letter in text[:200])


def _content(path: Path, source: Path) -> bytes:
    if path.stat().st_size > MOST_TEXT:
        raise BadInput(f"{source}: a recipe or lock in the bundle is larger than {MOST_TEXT >> 20} MiB")
    return path.read_bytes()


def require_unused_names(bundle: StagedBundle, source: Path) -> None:
    """Check that the bundle would not replace an existing recipe that has different content.

    Raises:
        BadInput: if the bundle would replace such a recipe; the message names the recipes and the existing
            files.
    """
    different = [f"{name} (differs from {file})" for name, file in different_recipes(bundle)]
    if different:
        raise BadInput(
            f"{source}: not installed, because the bundle would replace recipes: {', '.join(different[:5])}",
            fix="compare the recipes; to replace the existing recipes, add `--replace`",
        )


def different_recipes(bundle: StagedBundle) -> Iterator[tuple[str, Path]]:
    """Yield the name of each recipe in the bundle whose recipe file or lock differs from an existing file
    with the same name. Also yield the path of the existing file.

    Existing files are in the user's folder, or are shipped with toolkit.
    """
    for name in bundle.index.recipes:
        for ending in (".toml", SUFFIX):
            path = f"recipes/{name}{ending}"
            known = (config_dir() / path, shipped_folder("recipes") / f"{name}{ending}")
            differs = [
                file for file in known if os.path.lexists(file) and not _has_digest(file, bundle.sums[path])
            ]
            if differs:
                yield name, differs[0]
                break


def install_recipes(bundle: StagedBundle) -> tuple[str, ...]:
    """Install the bundle's recipes, locks and signature files of locks in the user's folder.

    toolkit skips a file if the user's folder has an identical file. toolkit also skips a recipe or lock that
    is identical to a shipped file, if the user's folder has no file with this name. Exception: if the
    recipe is in the user's folder, toolkit installs the lock there even if toolkit ships an identical lock.

    Returns:
        the names of the written files.
    """
    return tuple(Path(path).name for name in bundle.index.recipes for path in _install_recipe(bundle, name))


def _install_recipe(bundle: StagedBundle, name: str) -> Iterator[str]:
    """Install the files of a recipe, and yield the name of each file that toolkit writes."""
    toml, lock, signature = (f"recipes/{name}{ending}" for ending in (".toml", SUFFIX, f"{SUFFIX}.asc"))
    # For a recipe in the user's folder, toolkit ignores a shipped lock. So write the lock of such a recipe to
    # the user's folder, too.
    own = not _is_shipped(toml, bundle)
    if own and _written(toml, bundle):
        yield toml
    if (own or not _is_shipped(lock, bundle)) and _written(lock, bundle):
        # Remove the signature file of the old lock, which toolkit has just replaced.
        signature_file(config_dir() / lock).unlink(missing_ok=True)
        yield lock
    if os.path.lexists(config_dir() / lock) and signature in bundle.sums and _written(signature, bundle):
        yield signature


def _is_shipped(path: str, bundle: StagedBundle) -> bool:
    """Return whether toolkit ships a file that is identical to the bundle's file ``path``, and the user's
    folder has no file with this name.
    """
    return not os.path.lexists(config_dir() / path) and _has_digest(
        shipped_folder("recipes") / Path(path).name, bundle.sums[path]
    )


def _written(path: str, bundle: StagedBundle) -> bool:
    target = config_dir() / path
    if _has_digest(target, bundle.sums[path]):
        return False
    install(bundle.files[path], target)
    return True


def _has_digest(file: Path, digest: str) -> bool:
    return file.is_file() and hash_file(file) == digest
