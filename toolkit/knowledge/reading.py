"""Read a file of ``recipes/knowledge``."""

from collections.abc import Callable, Mapping
from typing import TypeVar

import msgspec

from toolkit.data import shipped_folder
from toolkit.errors import BadInput
from toolkit.knowledge.strict import tables, text_of

_T = TypeVar("_T")


class Row(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One row of a table, with ``source``, the source of the facts in the row."""

    source: str


Tables = Mapping[str, object]


def _as_they_are(raw: Tables) -> Tables:
    return raw


def read(name: str, kind: type[_T], arrange: Callable[[Tables], Tables] = _as_they_are) -> _T:
    """Return the content of ``recipes/knowledge/NAME.toml`` as an object of the type ``kind``. ``arrange``
    converts the file's tables to the fields of ``kind``; by default, the tables are unchanged.
    """
    file = shipped_folder("recipes") / "knowledge" / f"{name}.toml"
    try:
        return msgspec.convert(arrange(tables(text_of(file), str(file))), kind)
    except msgspec.ValidationError as error:
        raise BadInput(
            f"{file}: {error}", fix="install toolkit again; this file is a part of toolkit"
        ) from error
