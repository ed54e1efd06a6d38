"""Read ``joins.toml``: calls and imports which show that a Python program connects its ranks, so that the
ranks form one world.
"""

from functools import cache

import msgspec

from toolkit.knowledge.reading import Row, read


class Join(Row, frozen=True, kw_only=True):
    """One way in which a program connects its ranks: dotted names that the program calls or imports.

    A ``*`` in a name matches any text.
    """

    name: str
    calls: tuple[str, ...]
    imports: tuple[str, ...] = ()


class RankLauncher(Row, frozen=True, kw_only=True):
    """Programs and Python modules (``words``) that start the ranks of another program."""

    words: tuple[str, ...]
    name: str


class RankVariables(Row, frozen=True, kw_only=True):
    """Variables from which a program reads its rank. ``torchrun`` lists the variables that torchrun sets."""

    variables: tuple[str, ...]
    torchrun: tuple[str, ...]


class HiddenCode(Row, frozen=True, kw_only=True):
    """Calls, such as ``os.system``, that run code that is not in the program's text.

    ``harmless`` lists programs that do not connect ranks; toolkit ignores a call that starts such a program.
    """

    calls: tuple[str, ...]
    harmless: tuple[str, ...]


class SayingCall(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Calls whose arguments toolkit records, because they affect how ranks start, find each other or load
    data.

    ``arguments`` maps the name of an argument to its position, counted from 0. ``says``, if given, is the
    name under which toolkit records the call itself, such as ``spawn``.
    """

    calls: tuple[str, ...]
    says: str = ""
    arguments: dict[str, int] = {}


class Sayings(Row, frozen=True, kw_only=True):
    """Variables and calls with which a program sets how its ranks find each other."""

    variables: tuple[str, ...]
    call: tuple[SayingCall, ...]


class Needs(Row, frozen=True, kw_only=True):
    """Names in a program which show that it needs files, TensorFlow 1 or another package.

    ``files`` are calls that read a file. ``tensorflow_1`` are names that only TensorFlow 1 has. ``beside``
    maps a module, such as ``horovod.torch``, to another package that this module needs, such as ``torch``.
    """

    files: tuple[str, ...]
    tensorflow_1: tuple[str, ...]
    beside: dict[str, str]


class PlainPackages(Row, frozen=True, kw_only=True):
    """Import names of packages that do not connect ranks."""

    packages: tuple[str, ...]


class JoinKnowledge(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of ``joins.toml``. ``distributions`` maps the name that a program imports to the package's
    name on a package index.
    """

    join: tuple[Join, ...]
    launcher: tuple[RankLauncher, ...]
    ranks: RankVariables
    hidden: HiddenCode
    says: Sayings
    needs: Needs
    plain: PlainPackages
    distributions: dict[str, str]


@cache
def joins() -> JoinKnowledge:
    """Return the content of ``joins.toml``."""
    return read("joins", JoinKnowledge)


@cache
def distribution_of(module: str) -> str:
    """Return the name of a module's package on a package index, such as ``pillow`` for ``PIL``.

    The result is ``module`` itself if ``joins.toml`` lists no package for it.
    """
    known = joins().distributions
    return known.get(module, module) if module != "source" else module
