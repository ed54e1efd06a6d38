"""Read and check a fix file, which ``toolkit doctor IMAGE --fix`` writes."""

import re
from pathlib import Path
from typing import get_args, get_type_hints

import msgspec

from toolkit.errors import BadInput
from toolkit.files import read_given
from toolkit.knowledge.lines import line_of
from toolkit.knowledge.strict import LONGEST, plain_text, tables
from toolkit.launch.jobscript.plan import check_variables
from toolkit.launch.request.fixfields import faults
from toolkit.model.fix import Fix

_AT = re.compile(r"^(?P<what>.*?)(?: - at `(?:key in )?\$\.?(?P<path>[^`]*)`)?$", re.DOTALL)
_FIELD = re.compile(r"(?:unknown|missing required) field `(?P<field>[^`]*)`")


def load(file: Path) -> Fix:
    """Return the fix in a fix file.

    Raises:
        BadInput: if a field is wrong; the message names the file, the line, the field and the valid values.
    """
    content = read_given(
        file, limit=LONGEST, label="--fix", fix="give a file that `toolkit doctor IMAGE --fix` wrote"
    )
    text = plain_text(content, str(file))
    try:
        fix = msgspec.convert(tables(text, str(file)), Fix)
    except msgspec.ValidationError as error:
        raise _refusal(str(error), text, file) from error
    _check(fix, text, file)
    return fix


def _check(fix: Fix, text: str, file: Path) -> None:
    try:
        check_variables((*fix.launch.env, *fix.launch.unset))
    except BadInput as error:
        what = error.message.partition(": ")[2] or error.message
        name = next(n for n in (*fix.launch.env, *fix.launch.unset) if not (n.isidentifier() and n.isascii()))
        field = "launch.env" if name in fix.launch.env else "launch.unset"
        raise BadInput(f"{file}:{line_of(text, field)}: {field}: {name!r}: {what}") from error
    for field, what in faults(fix):
        raise BadInput(f"{file}:{line_of(text, field)}: {field}: {what}")


def _refusal(message: str, text: str, file: Path) -> BadInput:
    match = _AT.match(message)
    what, path = (match["what"], (match["path"] or "").partition("[")[0]) if match else (message, "")
    choices: tuple[str, ...] = ()
    if field := _FIELD.search(what):
        choices = _fields(path) if what.startswith("Object contains") else ()
        path = f"{path}.{field['field']}".lstrip(".")
        what = "unknown field" if choices else "this field is required"
    elif what.startswith("Invalid enum value"):
        value = what.removeprefix("Invalid enum value").strip()
        what, choices = f"{value} is not an allowed value", _literals(path)
    allowed = f"; choices: {', '.join(choices)}" if choices else ""
    start = f"{path}: " if path else ""
    return BadInput(
        f"{file}:{line_of(text, path)}: {start}{what[0].lower()}{what[1:].replace('`', chr(39))}{allowed}"
    )


def _struct_at(path: str) -> type[msgspec.Struct]:
    struct: type[msgspec.Struct] = Fix
    for part in filter(None, path.split(".")):
        hint = get_type_hints(struct).get(part)
        if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
            struct = hint
    return struct


def _fields(path: str) -> tuple[str, ...]:
    return tuple(field.encode_name for field in msgspec.structs.fields(_struct_at(path)))


def _literals(path: str) -> tuple[str, ...]:
    hint = get_type_hints(_struct_at(path)).get(path.rpartition(".")[2])
    return tuple(value for value in get_args(hint) if isinstance(value, str))
