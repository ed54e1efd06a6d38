"""Describe a fault in a TOML file in one line: file, line, field, valid choices and a suggestion."""

import re
import tomllib
from pathlib import Path
from typing import Any, NamedTuple, get_type_hints

import msgspec

from toolkit.errors import BadInput
from toolkit.files import read_given
from toolkit.knowledge.lines import line_of
from toolkit.near import suggest_near

_UNKNOWN = re.compile(r"unknown field `(?P<field>.*)`")
_MISSING = re.compile(r"missing required field `(?P<field>.*)`")
_AT = re.compile(r"^(?P<what>.*?)(?: - at `(?:key in )?\$\.?(?P<path>.*)`)?$", re.DOTALL)
_PLACE = re.compile(r"^(?P<what>.*) \(at (?:line (?P<line>\d+), column \d+|end of document)\)$", re.DOTALL)
LONGEST = 1 << 20
"""Maximum size, in bytes, of a TOML or YAML file that users write."""


_WIDEST = 200


class FieldFault(NamedTuple):
    """A fault in a field of a file.

    ``path`` is the dotted name of the field; ``what`` describes the fault; ``choices`` are the valid values
    or field names, if toolkit can list them.
    """

    path: str
    what: str
    choices: tuple[str, ...] = ()


def text_of(path: Path) -> str:
    """Return the text of a TOML or YAML file that users write.

    Raises:
        BadInput: the file cannot be read, is not UTF-8, or is longer than 1 MiB.
    """
    return plain_text(read_given(path, limit=LONGEST), str(path))


def plain_text(content: bytes, file: str) -> str:
    """Decode bytes as UTF-8, without the byte order mark that some editors write.

    Raises:
        BadInput: the bytes are not UTF-8; the message has the line and the offset of the first wrong byte.
    """
    try:
        return content.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise BadInput(
            f"{file}:{line}: the byte at offset {error.start} is not UTF-8", fix="save the file as UTF-8"
        ) from error


def tables(text: str, file: str) -> dict[str, Any]:
    """Parse TOML text; error messages name ``file``.

    Raises:
        BadInput: the text is not TOML; the message names the line of a syntax error.
    """
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = _PLACE.match(str(error))
        line = (found and found["line"]) or str(text.count("\n") + 1)
        raise BadInput(f"{file}:{line}: this is not TOML: {found['what'] if found else error}") from error
    except (ValueError, RecursionError) as error:  # a number with too many digits, or too deep nesting
        raise BadInput(f"{file}: this is not TOML: {str(error)[:80]}") from error


def shape(message: str, kind: type) -> FieldFault:
    """Translate msgspec's error message into a fault; ``kind`` is the struct type of the whole file."""
    found = _AT.match(message)
    what, path = (found["what"], found["path"] or "") if found else (message, "")
    if unknown := _UNKNOWN.search(what):
        choices = _fields(kind, path)
        full = f"{path}.{unknown['field']}".lstrip(".")
        return FieldFault(full, f"unknown field{suggest_near(unknown['field'], choices)}", choices)
    if missing := _MISSING.search(what):
        return FieldFault(f"{path}.{missing['field']}".lstrip("."), "this field is required")
    if what.startswith("Invalid enum value"):
        value = what.removeprefix("Invalid enum value").strip()
        return FieldFault(path, f"{value} is not an allowed value", _literals(kind, path))
    return FieldFault(path, what[0].lower() + what[1:].replace("`", "'"))


def field_error(objection: FieldFault, text: str, file: str) -> BadInput:
    """Return the error for a fault in a field of the file ``file``.

    The error names the line of the field in ``text``, which is the content of the file.
    """
    told = f"; choices: {', '.join(objection.choices)}" if objection.choices else ""
    field = f"{_one_line(objection.path)}: " if objection.path else ""
    return BadInput(f"{file}:{line_of(text, objection.path)}: {field}{_one_line(objection.what)}{told}")


def _one_line(text: str) -> str:
    """Return ``text`` with ``?`` instead of each unprintable character, cut after 200 characters."""
    plain = "".join(c if c.isprintable() else "?" for c in text)
    return plain if len(plain) <= _WIDEST else f"{plain[:_WIDEST]}…"


def _struct_at(kind: type, path: str) -> type:
    """Return the innermost struct type on a dotted path that starts at ``kind``."""
    here = kind
    for part in filter(None, path.split(".")):
        hint = get_type_hints(here).get(part.partition("[")[0])
        options = [hint, *getattr(hint, "__args__", ())]
        here = next((o for o in options if isinstance(o, type) and issubclass(o, msgspec.Struct)), here)
    return here


def _fields(kind: type, path: str) -> tuple[str, ...]:
    return tuple(field.encode_name for field in msgspec.structs.fields(_struct_at(kind, path)))


def _literals(kind: type, path: str) -> tuple[str, ...]:
    """Return the allowed values of the field ``path``; empty if its type does not list allowed values."""
    name = path.rpartition(".")[2].partition("[")[0]
    hint = get_type_hints(_struct_at(kind, path)).get(name)
    choices = [value for value in getattr(hint, "__args__", ()) if isinstance(value, str)]
    for option in getattr(hint, "__args__", ()):
        choices += [value for value in getattr(option, "__args__", ()) if isinstance(value, str)]
    return tuple(choices)
