"""Read ``remedies.toml``: single changes that may fix a launch."""

from functools import cache

import msgspec

from toolkit.knowledge.reading import Row, read


class Remedy(Row, frozen=True, kw_only=True):
    """A change of a launch: options of the container runtime, environment variables and bind mounts.

    If ``runtime`` and ``version`` are given, the change works only with these releases of this container
    runtime.
    """

    container: tuple[str, ...] = ()
    env: dict[str, str] = msgspec.field(default_factory=dict)
    binds: tuple[str, ...] = ()
    runtime: str = ""
    version: str = ""


class Remedies(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of ``remedies.toml``, in the order in which toolkit tries the changes."""

    remedy: tuple[Remedy, ...]


@cache
def remedies() -> tuple[Remedy, ...]:
    """Return the changes, in the order in which toolkit tries the changes to fix a launch."""
    return read("remedies", Remedies).remedy
