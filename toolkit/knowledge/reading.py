"""Decode one file of ``recipes/knowledge``."""

from typing import TypeVar

import msgspec

from toolkit.data import shipped
from toolkit.errors import BadInput

_T = TypeVar("_T")


class Row(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One thing that is known, and who says so."""

    source: str


def read(name: str, kind: type[_T]) -> _T:
    """Return ``recipes/knowledge/NAME.toml`` as values of ``kind``."""
    file = shipped("recipes") / "knowledge" / f"{name}.toml"
    try:
        return msgspec.toml.decode(file.read_bytes(), type=kind)
    except (msgspec.DecodeError, OSError) as error:
        raise BadInput(f"{file}: {error}", fix="this file came with toolkit: install it again") from error
