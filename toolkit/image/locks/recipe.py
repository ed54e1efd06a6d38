"""Read a recipe and check its values; error messages name the file, the line, the field and the choices."""

import hashlib
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import NamedTuple

import msgspec

from toolkit import data
from toolkit.errors import BadInput
from toolkit.knowledge.components import wantable_components
from toolkit.knowledge.stacks import Stacks
from toolkit.knowledge.strict import FieldFault, field_error, shape, tables, text_of
from toolkit.model.recipe import LONGEST_LINE, MATCH_HOST, MPIS, OPERATIONS, Recipe
from toolkit.near import suggest_near
from toolkit.versions import is_wish

_EARLIER = "toolkit.recipe/1"
_PRESENT = "toolkit.recipe/2"
_MATCHED = (*MPIS, "cuda")
"""Components that a recipe can match to a cluster: toolkit then chooses an MPI that works with the cluster's
PMIx, and a CUDA that works with the cluster's GPU driver.
"""

NAME = re.compile(r"[a-z0-9]+(?:[._-][a-z0-9]+)*")
"""The syntax of a recipe's name, which is also the name of its image."""
_ADDED = frozenset({"indexes"})
"""Recipe keys that did not exist in the first version of the schema ``toolkit.recipe/2``."""
_INDEX = re.compile(r"https://[A-Za-z0-9.-]+(?::[0-9]{1,5})?(?:/[A-Za-z0-9._~%+/-]*)?")
_PINNED = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(?:\[[A-Za-z0-9,._-]+\])?==[A-Za-z0-9.+!]+")


class NamedRecipe(NamedTuple):
    """A recipe and its name. The image has the same name, and the recipe's file is ``NAME.toml``."""

    name: str
    recipe: Recipe

    @property
    def tag(self) -> str:
        """The tag of the recipe's image in the Docker engine."""
        return f"toolkit/{self.name}:latest"


def names() -> list[str]:
    """Return the names of all shipped recipes and of the user's own recipes."""
    return data.names("recipes", ".toml")


def load(name: str, table: Stacks | None = None) -> NamedRecipe:
    """Read a recipe by its name or path, and check its values.

    ``table`` contains the known bases and architectures. If ``table`` is given, the recipe's base and
    architecture must be in ``table``. Callers that only compare a recipe with a lock omit ``table``.

    Raises:
        BadInput: if a field is invalid; the message has the file, the line, the field and the choices.
    """
    path = data.find("recipes", name, ".toml")
    stem = path.name.removesuffix(".toml")
    if not NAME.fullmatch(stem):
        raise BadInput(
            f"{path}: {stem!r} is not a valid name for a recipe and its image; use small letters and digits, "
            "separated by single dots, dashes or underscores",
            fix="rename the file",
        )
    return NamedRecipe(stem, parse(text_of(path), str(path), table))


def parse(text: str, file: str, table: Stacks | None = None) -> Recipe:
    """Parse the text of a recipe, and check its values.

    ``file`` is the name of the recipe's file in error messages. ``table`` contains the known bases and
    architectures; without ``table``, toolkit does not check the recipe's base and architecture.

    Raises:
        BadInput: if a field is invalid; the message has the file, the line, the field and the choices.
    """
    raw = tables(text, file)
    if raw.get("schema") == _EARLIER:
        raise field_error(
            FieldFault("schema", f"toolkit no longer reads {_EARLIER}", (_PRESENT,)), text, file
        )
    if number := _no_text(raw.get("want")):
        raise field_error(number, text, file)
    try:
        recipe = msgspec.convert(raw, Recipe)
    except msgspec.ValidationError as error:
        raise field_error(shape(str(error), Recipe), text, file) from error
    for objection in objections(recipe, table):
        raise field_error(objection, text, file)
    return recipe


def recipe_sha256(recipe: Recipe) -> str:
    """Return the SHA-256 of a recipe's values. Comments and the order of keys do not change the hash.

    A key in ``_ADDED`` changes the hash only if the recipe sets the key. A lock that is older than the key
    therefore stays valid.
    """
    values = msgspec.to_builtins(recipe, order="deterministic")
    fields = {key: value for key, value in values.items() if value or key not in _ADDED}
    return hashlib.sha256(msgspec.json.encode(fields)).hexdigest()


def objections(recipe: Recipe, table: Stacks | None) -> Iterator[FieldFault]:
    """Yield a fault for each invalid field of a recipe; without ``table``, ignore base and architecture."""
    for field, text in (("title", recipe.title), ("unbuildable", recipe.unbuildable)):
        if not text.isprintable() or len(text) > LONGEST_LINE:
            yield FieldFault(field, f"expected one line of printable text, at most {LONGEST_LINE} characters")
    for name, wish in recipe.want.items():
        yield from _of_wish(name, wish)
    yield from _of_mpi(recipe)
    if "horovod" in recipe.want and not recipe.horovod.operations:
        yield FieldFault("horovod.operations", "Horovod needs MPI, Gloo or NCCL", OPERATIONS)
    yield from _of_base(recipe, table) if table else ()
    for index in recipe.indexes:
        if not _INDEX.fullmatch(index):
            shown = index.rpartition("@")[2]
            what = f"{shown!r} is not valid; write an https address without a user name and password"
            yield FieldFault("indexes", what)
    for package in recipe.packages:
        if not _PINNED.fullmatch(package):
            yield FieldFault("packages", f"{package!r} is not pinned; write NAME==VERSION")


def _no_text(want: object) -> FieldFault | None:
    """Return a fault for the first value in the table ``want`` that is not a string; None if all are strings.

    msgspec's own error message does not name the faulty key.
    """
    for name, wish in want.items() if isinstance(want, dict) else ():
        if not isinstance(wish, str):
            return FieldFault(f"want.{name}", f"expected 'str', got '{type(wish).__name__}'")
    return None


def _of_wish(name: str, wish: str) -> Iterator[FieldFault]:
    if name not in wantable_components():
        yield FieldFault(
            f"want.{name}",
            f"unknown component{suggest_near(name, wantable_components())}",
            wantable_components(),
        )
    elif wish == MATCH_HOST:
        if name not in _MATCHED:
            what = f"{wish!r} is valid only for components that toolkit can match to the cluster"
            yield FieldFault(f"want.{name}", what, _MATCHED)
    elif not is_wish(wish):
        what = f"{wish!r} is not a constraint; write '*', '2.15.*', '>=4.1,<5' or a version"
        yield FieldFault(f"want.{name}", what)


def _of_base(recipe: Recipe, table: Stacks) -> Iterator[FieldFault]:
    bases = tuple(row.name for row in table.base)
    if recipe.base and not any(fnmatchcase(name, recipe.base) for name in bases):
        yield FieldFault("base", f"unknown base {recipe.base!r}", bases)
    if recipe.architecture not in table.architectures:
        what = f"unknown architecture {recipe.architecture!r}"
        yield FieldFault("architecture", what, table.architectures)


def _user_of_mpi(recipe: Recipe) -> str:
    """Return the component of the recipe that toolkit must compile with an MPI, or an empty text."""
    if "mpi4py" in recipe.want:
        return "mpi4py"
    return "Horovod over MPI" if "mpi" in recipe.operations else ""


def _of_mpi(recipe: Recipe) -> Iterator[FieldFault]:
    wanted = [name for name in MPIS if name in recipe.want]
    if not wanted and (user := _user_of_mpi(recipe)):
        yield FieldFault("want", f"{user} needs an MPI", MPIS)
    elif len(wanted) > 1:
        yield FieldFault(f"want.{wanted[1]}", "an image can have only one MPI", MPIS)
