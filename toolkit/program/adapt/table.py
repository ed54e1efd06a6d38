"""Read ``adapt.toml``: the names in training scripts that ``toolkit adapt`` recognises."""

import re
from collections.abc import Iterable
from fnmatch import translate
from functools import cache

import msgspec

from toolkit.knowledge.reading import Row, read


class KerasCallbacks(Row, frozen=True, kw_only=True):
    """Keras callbacks that write files, set the learning rate, or restore a state."""

    writers: tuple[str, ...]
    own_rate: tuple[str, ...]
    restores: tuple[str, ...]


class KerasNames(Row, frozen=True, kw_only=True):
    """Names that ``toolkit adapt`` recognises in scripts with Keras.

    ``models`` are calls that create a model, and ``bases`` are base classes of models. ``fit`` are arguments
    by which toolkit recognises a call of ``Model.fit``. ``three`` are names that only Keras 3 has.

    ``optimizers`` maps the name of an optimizer to its class and default learning rate. ``schedules`` maps a
    schedule's class to the names of its arguments for the learning rate and the number of steps.
    """

    models: tuple[str, ...]
    bases: tuple[str, ...]
    fit: tuple[str, ...]
    three: tuple[str, ...]
    generators: tuple[str, ...]
    optimizers: dict[str, tuple[str, str]]
    schedules: dict[str, tuple[str, str]]
    callbacks: KerasCallbacks


class TorchNames(Row, frozen=True, kw_only=True):
    """Names that ``toolkit adapt`` recognises in scripts with PyTorch.

    ``same`` are the attributes for which a script needs no ``.module``, because ``DistributedDataParallel``
    itself has them. ``moves`` are the methods that move a model to a device, or change the number
    format of its weights.

    ``optimizers`` maps an optimizer's class to its default learning rate. ``schedules`` maps a schedule's
    class to the names of its arguments that are learning rates.
    """

    modules: tuple[str, ...]
    bases: tuple[str, ...]
    same: tuple[str, ...]
    moves: tuple[str, ...]
    optimizers: dict[str, str]
    schedules: dict[str, tuple[str, ...]]


class WriteNames(Row, frozen=True, kw_only=True):
    """Calls that write files or show pictures, and calls that read files (``loads``).

    ``plain`` are calls, such as ``len``, that work even if only rank 0 makes them. toolkit lets only rank 0
    run a statement that writes a file if all other calls in the statement are in ``plain`` or also write.
    """

    calls: tuple[str, ...]
    methods: tuple[str, ...]
    loads: tuple[str, ...]
    load_methods: tuple[str, ...]
    plain: tuple[str, ...]
    plain_methods: tuple[str, ...]


class AdaptNames(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The contents of ``adapt.toml``."""

    keras: KerasNames
    torch: TorchNames
    writes: WriteNames


@cache
def table() -> AdaptNames:
    """Return the contents of ``adapt.toml``."""
    return read("adapt", AdaptNames)


def is_one_of(name: str, patterns: Iterable[str]) -> bool:
    """Return whether a dotted name matches one of ``patterns``, where ``*`` matches any text."""
    return bool(name) and _any(tuple(patterns)).fullmatch(name) is not None


@cache
def _any(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(translate(pattern) for pattern in patterns))
