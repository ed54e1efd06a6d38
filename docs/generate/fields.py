"""The fields of the files that users write, read from the structs that parse these files."""

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any, NamedTuple, cast

import msgspec
from msgspec import inspect as shapes

_SENTENCE = re.compile(r"(?<=\.)\s+(?=[`A-Z])")


class Field(NamedTuple):
    """One field: its dotted name, its allowed values, its default, its meaning."""

    name: str
    holds: str
    default: str
    meaning: str


def fields(struct: type[msgspec.Struct], said: Mapping[str, str], prefix: str = "") -> Iterator[Field]:
    """Yield the fields of a struct; the fields of an inner struct follow the field that contains this struct.

    ``said`` contains meanings of some fields by their dotted name; these meanings replace the texts in the
    struct. ``prefix`` comes before each name: the dotted name of the outer field and a dot.
    """
    told = _texts(struct)
    for field in msgspec.structs.fields(struct):
        name = f"{prefix}{field.encode_name}"
        shape = _without_null(shapes.type_info(field.type))
        inner = _inner(shape)
        meaning = said.get(name) or told.get(field.name) or (sentences(inner.cls)[0] if inner else "")
        yield Field(name, _holds(shape), _default(field), meaning or _naming(struct, field.name))
        if inner:
            yield from fields(inner.cls, said, f"{name}.")


def texts(struct: type[msgspec.Struct]) -> dict[str, str]:
    """Return the description of each field of a struct: the string below the field, or else the sentences of
    the struct's docstring that name the field.
    """
    below = _texts(struct)
    named = {name: _naming(struct, name) for name in struct.__struct_fields__}
    return {name: text for name, text in {**named, **below}.items() if text}


def sentences(struct: type[msgspec.Struct]) -> list[str]:
    """Return the sentences of a struct's docstring."""
    return _SENTENCE.split(_line(struct.__doc__ or ""))


def _texts(struct: type[msgspec.Struct]) -> dict[str, str]:
    """Return the string below each field in the source, by the field's name; Python drops these strings."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(struct)))
    body = cast("ast.ClassDef", tree.body[0]).body
    found = {}
    for field, text in pairwise(body):
        if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr):
            found[ast.unparse(field.target)] = _line(ast.literal_eval(text.value))
    return found


def _naming(struct: type[msgspec.Struct], name: str) -> str:
    """Return the sentences of a struct's docstring that name a field."""
    return " ".join(s for s in sentences(struct) if f"`{name}`" in s)


def _line(text: str) -> str:
    named = re.sub(r":(?:mod|class|func):`[\w.]*?(\w+)`", r"`\1`", " ".join(text.split()))
    return named.replace("``", "`")


def _without_null(shape: shapes.Type) -> shapes.Type:
    """Return the type of a field without null; null means that the field may be left out."""
    if not isinstance(shape, shapes.UnionType):
        return shape
    (kept,) = (kind for kind in shape.types if not isinstance(kind, shapes.NoneType))
    return kept


def _inner(shape: shapes.Type) -> shapes.StructType | None:
    if isinstance(shape, shapes.VarTupleType):
        return _inner(shape.item_type)
    return shape if isinstance(shape, shapes.StructType) else None


def _holds(shape: shapes.Type) -> str:
    match shape:
        case shapes.LiteralType():
            return ", ".join(f"`{value}`" for value in shape.values if value)
        case shapes.VarTupleType():
            return f"list of: {_holds(shape.item_type)}"
        case shapes.DictType():
            return "table: name = text"
        case shapes.StructType():
            return "table"
    return _WORDS[type(shape)]


_WORDS: dict[type[shapes.Type], str] = {
    shapes.StrType: "text",
    shapes.IntType: "number",
    shapes.BoolType: "`true` or `false`",
}


def _default(field: msgspec.structs.FieldInfo) -> str:
    if field.required:
        return "required"
    value: Any = field.default if field.default is not msgspec.NODEFAULT else field.default_factory
    empty = value in (None, "", ()) or isinstance(value, msgspec.Struct) or callable(value)
    return "" if empty else f"`{msgspec.json.encode(value).decode()}`"
