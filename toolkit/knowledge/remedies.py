"""``remedies.toml``: single changes that may fix a launch."""

from functools import cache

import msgspec

from toolkit.knowledge.reading import Row, read


class Remedy(Row, frozen=True, kw_only=True):
    """A change of a plan; ``runtime`` and ``version`` say which container runtime it needs, if any."""

    container: tuple[str, ...] = ()
    env: dict[str, str] = msgspec.field(default_factory=dict)
    binds: tuple[str, ...] = ()
    runtime: str = ""
    version: str = ""


class Remedies(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``remedies.toml``, in the order of trying."""

    remedy: tuple[Remedy, ...]


@cache
def remedies() -> tuple[Remedy, ...]:
    """Return the changes to try."""
    return read("remedies", Remedies).remedy
