"""Read a recipe, and refuse what cannot be built: file, line, field, choices."""

import difflib
import hashlib
import re
import tomllib
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from typing import NamedTuple, get_type_hints

import msgspec

from toolkit import data
from toolkit.errors import BadInput
from toolkit.image.lines import line_of
from toolkit.knowledge.stacks import Stacks, stacks
from toolkit.model.recipe import MATCH_HOST, MPIS, OPERATIONS, WANTABLE, Recipe
from toolkit.versions import is_wish

_EARLIER = "toolkit.recipe/1"
_PRESENT = "toolkit.recipe/2"
_MATCHED = (*MPIS, "cuda")
"""What a cluster decides: its PMIx which MPI starts there, its driver which CUDA."""

_NAME = re.compile(r"[a-z0-9]+(?:[._-][a-z0-9]+)*")
_PINNED = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(?:\[[A-Za-z0-9,._-]+\])?==[A-Za-z0-9.+!]+")
_UNKNOWN = re.compile(r"unknown field `(?P<field>.*)`")
_MISSING = re.compile(r"missing required field `(?P<field>.*)`")
_AT = re.compile(r"^(?P<what>.*?)(?: - at `\$\.?(?P<path>.*)`)?$", re.DOTALL)
_PLACE = re.compile(r"^(?P<what>.*) \(at (?:line (?P<line>\d+), column \d+|end of document)\)$", re.DOTALL)


class Named(NamedTuple):
    """A recipe and the name of its file, which becomes the name of its image."""

    name: str
    recipe: Recipe

    @property
    def tag(self) -> str:
        """The name of the image in the Docker engine."""
        return f"toolkit/{self.name}:latest"


class _Objection(NamedTuple):
    """Why a field will not do; the path is dotted."""

    path: str
    what: str
    choices: tuple[str, ...] = ()


def names() -> list[str]:
    """List the recipes that there are, the person's own included."""
    return data.names("recipes", ".toml")


def load(name: str) -> Named:
    """Read the recipe of a name or a path, and check that it can be built.

    Raises:
        BadInput: one line with file, line, field and choices.
    """
    path = data.find("recipes", name, ".toml")
    stem = path.name.removesuffix(".toml")
    if not _NAME.fullmatch(stem):
        raise BadInput(
            f"{path}: the name of a recipe becomes the name of its image: small letters and digits, "
            "with single dots, dashes or underscores between them",
            fix="rename the file",
        )
    try:
        text = path.read_text("utf-8")
    except UnicodeDecodeError as error:
        raise BadInput(f"{path}: byte {error.start} is not UTF-8, which TOML is written in") from error
    return Named(stem, parse(text, str(path)))


def parse(text: str, file: str) -> Recipe:
    """Read a recipe from its text; ``file`` is named in errors.

    Raises:
        BadInput: one line with file, line, field and choices.
    """
    try:
        raw = tomllib.loads(text)
        if raw.get("schema") == _EARLIER:
            raise _refused(_Objection("schema", f"{_EARLIER} is no longer read", (_PRESENT,)), text, file)
        if number := _no_text(raw.get("want")):
            raise _refused(number, text, file)
        recipe = msgspec.convert(raw, Recipe)
    except tomllib.TOMLDecodeError as error:
        raise _bad_toml(error, text, file) from error
    except msgspec.ValidationError as error:
        raise _refused(_shape(str(error)), text, file) from error
    for objection in objections(recipe, stacks()):
        raise _refused(objection, text, file)
    return recipe


def recipe_sha256(recipe: Recipe) -> str:
    """Return the hash of a recipe's values: comments and order of its text do not matter."""
    return hashlib.sha256(msgspec.json.encode(recipe, order="deterministic")).hexdigest()


def objections(recipe: Recipe, table: Stacks) -> Iterator[_Objection]:
    """Yield why this is no recipe, the most basic reason first; whether a stack fits it is for the solver."""
    for name, wish in recipe.want.items():
        yield from _of_wish(name, wish)
    yield from _of_mpi(recipe)
    if "horovod" in recipe.want and not recipe.horovod.operations:
        yield _Objection("horovod.operations", "Horovod needs a way to move tensors", OPERATIONS)
    bases = tuple(row.name for row in table.base)
    if recipe.base and not any(fnmatchcase(name, recipe.base) for name in bases):
        yield _Objection("base", f"no base is called {recipe.base!r}", bases)
    if recipe.architecture not in table.architectures:
        what = f"no base is known for {recipe.architecture!r}"
        yield _Objection("architecture", what, table.architectures)
    for package in recipe.packages:
        if not _PINNED.fullmatch(package):
            yield _Objection("packages", f"{package!r} is not pinned; write NAME==VERSION")


def _no_text(want: object) -> _Objection | None:
    """Return the first wish that is no text: msgspec does not tell which of a table it was."""
    for name, wish in want.items() if isinstance(want, dict) else ():
        if not isinstance(wish, str):
            return _Objection(f"want.{name}", f"expected 'str', got '{type(wish).__name__}'")
    return None


def _of_wish(name: str, wish: str) -> Iterator[_Objection]:
    if name not in WANTABLE:
        yield _Objection(f"want.{name}", f"there is no such component{_near(name, WANTABLE)}", WANTABLE)
    elif wish == MATCH_HOST:
        if name not in _MATCHED:
            what = "only what a cluster decides can match the host"
            yield _Objection(f"want.{name}", what, _MATCHED)
    elif not is_wish(wish):
        what = f"{wish!r} is no constraint; write '*', '2.15.*', '>=4.1,<5' or a version"
        yield _Objection(f"want.{name}", what)


def _of_mpi(recipe: Recipe) -> Iterator[_Objection]:
    wanted = [name for name in MPIS if name in recipe.want]
    if not wanted:
        yield _Objection("want", "an image needs an MPI", MPIS)
    elif len(wanted) > 1:
        yield _Objection(f"want.{wanted[1]}", "an image has one MPI", MPIS)


def _shape(message: str) -> _Objection:
    """Understand what msgspec says is wrong."""
    found = _AT.match(message)
    what, path = (found["what"], found["path"] or "") if found else (message, "")
    if unknown := _UNKNOWN.search(what):
        choices = _fields(path)
        full = f"{path}.{unknown['field']}".lstrip(".")
        return _Objection(full, f"there is no such field{_near(unknown['field'], choices)}", choices)
    if missing := _MISSING.search(what):
        return _Objection(f"{path}.{missing['field']}".lstrip("."), "this field is required")
    if what.startswith("Invalid enum value"):
        value = what.removeprefix("Invalid enum value").strip()
        return _Objection(path, f"{value} is none of the values that it may have", _literals(path))
    return _Objection(path, what[0].lower() + what[1:].replace("`", "'"))


def _struct_at(path: str) -> type:
    """Return the struct that a dotted path of a recipe leads to; the last one that is a struct."""
    here: type = Recipe
    for part in filter(None, path.split(".")):
        hint = get_type_hints(here).get(part.partition("[")[0])
        options = [hint, *getattr(hint, "__args__", ())]
        here = next((o for o in options if isinstance(o, type) and issubclass(o, msgspec.Struct)), here)
    return here


def _fields(path: str) -> tuple[str, ...]:
    return tuple(field.encode_name for field in msgspec.structs.fields(_struct_at(path)))


def _literals(path: str) -> tuple[str, ...]:
    """Return the texts that a field may hold, where it may hold only some."""
    name = path.rpartition(".")[2].partition("[")[0]
    hint = get_type_hints(_struct_at(path)).get(name)
    choices: list[str] = []
    for option in (hint, *getattr(hint, "__args__", ())):
        choices += [value for value in getattr(option, "__args__", ()) if isinstance(value, str)]
    return tuple(choices)


def _near(word: str, choices: Iterable[str]) -> str:
    close = difflib.get_close_matches(word, list(choices), n=1)
    return f", did you mean {close[0]}?" if close else ""


def _refused(objection: _Objection, text: str, file: str) -> BadInput:
    told = f"; choices: {', '.join(objection.choices)}" if objection.choices else ""
    field = f"{objection.path}: " if objection.path else ""
    return BadInput(f"{file}:{line_of(text, objection.path)}: {field}{objection.what}{told}")


def _bad_toml(error: tomllib.TOMLDecodeError, text: str, file: str) -> BadInput:
    found = _PLACE.match(str(error))
    line = (found and found["line"]) or str(text.count("\n") + 1)
    return BadInput(f"{file}:{line}: this is not TOML: {found['what'] if found else error}")
