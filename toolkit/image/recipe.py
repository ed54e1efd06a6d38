"""Read a recipe, and refuse what cannot be built: file, line, field, choices."""

import difflib
import re
import tomllib
from collections.abc import Iterable, Iterator
from typing import NamedTuple, get_type_hints

import msgspec

from toolkit import data
from toolkit.errors import BadInput
from toolkit.image.known import BaseRow, Known, PythonRow, known
from toolkit.image.lines import line_of
from toolkit.model.recipe import Recipe
from toolkit.versions import within

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
        recipe = msgspec.convert(tomllib.loads(text), Recipe)
    except tomllib.TOMLDecodeError as error:
        raise _bad_toml(error, text, file) from error
    except msgspec.ValidationError as error:
        raise _refused(_shape(str(error)), text, file) from error
    for objection in objections(recipe, known()):
        raise _refused(objection, text, file)
    return recipe


def objections(recipe: Recipe, table: Known) -> Iterator[_Objection]:
    """Yield why the recipe cannot be built with what is known, the most basic reason first."""
    base = next((row for row in table.base if row.name == recipe.base), None)
    if base is None:
        yield _Objection("base", f"no base is called {recipe.base!r}", tuple(row.name for row in table.base))
        return
    yield from _of_base(recipe, base)
    if recipe.mpi4py:
        yield from _of_python("mpi4py", recipe.mpi4py.version, table.mpi4py, base.python)
    if recipe.tensorflow:
        yield from _of_python("tensorflow", recipe.tensorflow.version, table.tensorflow, base.python)
    yield from _of_horovod(recipe, table)
    for package in recipe.packages:
        if not _PINNED.fullmatch(package):
            yield _Objection("packages", f"{package!r} is not pinned; write NAME==VERSION")


def _of_base(recipe: Recipe, base: BaseRow) -> Iterator[_Objection]:
    if recipe.python.version != base.python:
        what = f"{base.name} has no Python {recipe.python.version}"
        yield _Objection("python.version", what, (base.python,))
    offered = tuple(m.version for m in base.mpi if m.implementation == recipe.mpi.implementation)
    if recipe.mpi.version not in offered:
        what = f"{base.name} has no {recipe.mpi.implementation} {recipe.mpi.version}"
        yield _Objection("mpi.version", what, offered)


def _of_python(name: str, version: str, rows: Iterable[PythonRow], python: str) -> Iterator[_Objection]:
    fitting = tuple(row.version for row in rows if python in row.python)
    if version not in fitting:
        yield _Objection(f"{name}.version", f"no {name} {version} is known for Python {python}", fitting)


def _of_horovod(recipe: Recipe, table: Known) -> Iterator[_Objection]:
    if recipe.horovod is None:
        return
    if recipe.tensorflow is None:
        yield _Objection("horovod", "Horovod needs a [tensorflow] to be built for")
        return
    row = next((row for row in table.horovod if row.version == recipe.horovod.version), None)
    if row is None:
        what = f"no horovod {recipe.horovod.version} is known"
        yield _Objection("horovod.version", what, tuple(row.version for row in table.horovod))
    elif not within(recipe.tensorflow.version, row.tensorflow):
        what = f"horovod {row.version} builds with tensorflow {row.tensorflow}"
        yield _Objection("tensorflow.version", what)
    if not recipe.horovod.operations:
        yield _Objection("horovod.operations", "Horovod needs a way to move tensors", ("mpi", "gloo"))


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
