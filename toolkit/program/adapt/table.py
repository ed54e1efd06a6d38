"""``adapt.toml``: what the names of a training script mean to ``toolkit adapt``."""

import re
from collections.abc import Iterable
from fnmatch import translate
from functools import cache

import msgspec

from toolkit.knowledge.reading import Row, read


class KerasCallbacks(Row, frozen=True, kw_only=True):
    """Callbacks that write files, that set the rate, and that restore a state."""

    writers: tuple[str, ...]
    own_rate: tuple[str, ...]
    restores: tuple[str, ...]


class KerasNames(Row, frozen=True, kw_only=True):
    """Names of Keras; ``optimizers`` gives class and rate, ``schedules`` arguments of rate and steps."""

    models: tuple[str, ...]
    bases: tuple[str, ...]
    fit: tuple[str, ...]
    three: tuple[str, ...]
    generators: tuple[str, ...]
    optimizers: dict[str, tuple[str, str]]
    schedules: dict[str, tuple[str, str]]
    callbacks: KerasCallbacks


class TorchNames(Row, frozen=True, kw_only=True):
    """Names of PyTorch; ``optimizers`` gives the usual rate, ``schedules`` the arguments that are rates."""

    modules: tuple[str, ...]
    bases: tuple[str, ...]
    same: tuple[str, ...]
    moves: tuple[str, ...]
    optimizers: dict[str, str]
    schedules: dict[str, tuple[str, ...]]


class WriteNames(Row, frozen=True, kw_only=True):
    """Calls that write, calls that read the files again, and calls without an effect."""

    calls: tuple[str, ...]
    methods: tuple[str, ...]
    loads: tuple[str, ...]
    load_methods: tuple[str, ...]
    plain: tuple[str, ...]
    plain_methods: tuple[str, ...]


class AdaptNames(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``adapt.toml``."""

    keras: KerasNames
    torch: TorchNames
    writes: WriteNames


@cache
def table() -> AdaptNames:
    """Return the whole table."""
    return read("adapt", AdaptNames)


def is_one_of(name: str, patterns: Iterable[str]) -> bool:
    """Return whether a dotted name matches at least one pattern."""
    return bool(name) and _any(tuple(patterns)).fullmatch(name) is not None


@cache
def _any(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(translate(pattern) for pattern in patterns))
