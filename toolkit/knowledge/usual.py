"""``usual.toml``: the properties of an ordinary cluster and an ordinary image."""

from functools import cache
from typing import Any

import msgspec

from toolkit.knowledge.reading import read


class TicketQuestion(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A fact that may decide; ``values`` are other common values, ``command`` prints it."""

    fact: str
    asks: str
    usual: str
    values: tuple[Any, ...]
    command: str


class Absent(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Facts that an ordinary host and image do not have."""

    host: tuple[str, ...]
    image: tuple[str, ...]


class Usual(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``usual.toml``."""

    host: dict[str, Any]
    image: dict[str, Any]
    absent: Absent
    interfaces: dict[str, tuple[str, ...]]
    question: tuple[TicketQuestion, ...]


@cache
def usual() -> Usual:
    """Return the properties of an ordinary cluster and an ordinary image."""
    return read("usual", Usual)
