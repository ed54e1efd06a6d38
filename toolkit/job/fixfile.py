"""Read and write the files of ``toolkit doctor --fix``; a file that somebody else wrote is never touched."""

import re
from pathlib import Path
from typing import get_args, get_type_hints

import msgspec

from toolkit.cli.files import write_whole
from toolkit.errors import BadInput
from toolkit.files import is_there, read_given
from toolkit.knowledge.lines import line_of
from toolkit.knowledge.strict import LONGEST, plain_text, tables
from toolkit.launch.fixfields import faults
from toolkit.launch.plan import check_variables
from toolkit.model.fix import Fix
from toolkit.report.fix import MARK

_AT = re.compile(r"^(?P<what>.*?)(?: - at `(?:key in )?\$\.?(?P<path>[^`]*)`)?$", re.DOTALL)
_FIELD = re.compile(r"(?:unknown|missing required) field `(?P<field>[^`]*)`")


def load(file: Path) -> Fix:
    """Read a fix.

    Raises:
        BadInput: one line with file, line, field and choices.
    """
    content = read_given(file, most=LONGEST, label="--fix", fix="toolkit doctor IMAGE --fix writes one")
    text = plain_text(content, str(file))
    try:
        fix = msgspec.convert(tables(text, str(file)), Fix)
    except msgspec.ValidationError as error:
        raise _refused(str(error), text, file) from error
    _check(fix, text, file)
    return fix


def write(file: Path, content: str) -> bool:
    """Write a file, and keep an earlier one of this command beside it; tell whether anything changed.

    Raises:
        BadInput: if a file of that name is there that this command did not write.
    """
    earlier = _own(file)
    if earlier == content:
        return False
    if earlier is not None:
        kept = undo_file(file)
        _own(kept)
        write_whole(kept, earlier.encode())
    write_whole(file, content.encode())
    return True


def undo(file: Path) -> str:
    """Put back what was there before the last :func:`write`, and say what that was.

    Raises:
        BadInput: if there is nothing of this command to be undone.
    """
    if _own(file) is None:
        raise BadInput(f"{file}: there is no such file, and nothing to undo")
    kept = undo_file(file)
    if _own(kept) is None:
        file.unlink()
        return f"{file} is removed; there was none before"
    kept.replace(file)
    return f"{file} is as it was before"


def undo_file(file: Path) -> Path:
    """Return where the earlier version of a file is kept."""
    return file.with_name(f"{file.name}.undo")


def _own(file: Path) -> str | None:
    """Return the text of a file that this command wrote, ``None`` if there is no file."""
    if not is_there(file):
        return None
    try:
        text = read_given(file, most=LONGEST).decode("utf-8")
    except (BadInput, UnicodeDecodeError):
        text = ""
    if not text.startswith(MARK):
        raise BadInput(
            f"{file}: there already, and toolkit doctor --fix did not write it",
            fix="give another name with -o, or move it away",
        )
    return text


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


def _refused(message: str, text: str, file: Path) -> BadInput:
    found = _AT.match(message)
    what, path = (found["what"], (found["path"] or "").partition("[")[0]) if found else (message, "")
    choices: tuple[str, ...] = ()
    if field := _FIELD.search(what):
        choices = _fields(path) if what.startswith("Object contains") else ()
        path = f"{path}.{field['field']}".lstrip(".")
        what = "there is no such field" if choices else "this field is required"
    elif what.startswith("Invalid enum value"):
        value = what.removeprefix("Invalid enum value").strip()
        what, choices = f"{value} is none of the values that it may have", _literals(path)
    told = f"; choices: {', '.join(choices)}" if choices else ""
    start = f"{path}: " if path else ""
    return BadInput(
        f"{file}:{line_of(text, path)}: {start}{what[0].lower()}{what[1:].replace('`', chr(39))}{told}"
    )


def _struct_at(path: str) -> type[msgspec.Struct]:
    here: type[msgspec.Struct] = Fix
    for part in filter(None, path.split(".")):
        hint = get_type_hints(here).get(part)
        if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
            here = hint
    return here


def _fields(path: str) -> tuple[str, ...]:
    return tuple(field.encode_name for field in msgspec.structs.fields(_struct_at(path)))


def _literals(path: str) -> tuple[str, ...]:
    hint = get_type_hints(_struct_at(path)).get(path.rpartition(".")[2])
    return tuple(value for value in get_args(hint) if isinstance(value, str))
