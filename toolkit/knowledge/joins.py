"""``joins.toml``: how the text of a Python program shows that its ranks join."""

from functools import cache

import msgspec

from toolkit.knowledge.reading import Row, read


class Join(Row, frozen=True, kw_only=True):
    """One way for ranks to join: dotted names that are called or imported; ``*`` matches any text."""

    name: str
    calls: tuple[str, ...]
    imports: tuple[str, ...] = ()


class RankLauncher(Row, frozen=True, kw_only=True):
    """Programs, or modules of Python, that start the ranks of the program named after them."""

    words: tuple[str, ...]
    name: str


class RankVariables(Row, frozen=True, kw_only=True):
    """Variables by which a program finds its rank; ``torchrun`` sets some of them."""

    variables: tuple[str, ...]
    torchrun: tuple[str, ...]


class HiddenCode(Row, frozen=True, kw_only=True):
    """Calls that start code which the text does not show; ``harmless`` are programs that join no ranks."""

    calls: tuple[str, ...]
    harmless: tuple[str, ...]


class SayingCall(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Calls whose ``arguments`` (name → place) say where ranks meet; ``says`` names the call itself."""

    calls: tuple[str, ...]
    says: str = ""
    arguments: dict[str, int] = {}


class Sayings(Row, frozen=True, kw_only=True):
    """Variables that a program may set, and calls to which it may pass arguments."""

    variables: tuple[str, ...]
    call: tuple[SayingCall, ...]


class Needs(Row, frozen=True, kw_only=True):
    """Calls that read a file, modules that need a package ``beside`` the package that has them, and names
    that only TensorFlow 1 has.
    """

    files: tuple[str, ...]
    tensorflow_1: tuple[str, ...]
    beside: dict[str, str]


class PlainPackages(Row, frozen=True, kw_only=True):
    """Packages, by import name, that join no ranks by themselves."""

    packages: tuple[str, ...]


class JoinKnowledge(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``joins.toml``; ``distributions`` maps import names to names on a package index."""

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
    """Return the whole table."""
    return read("joins", JoinKnowledge)


@cache
def distribution_of(module: str) -> str:
    """Return the package index's name for the package that is imported as ``module``."""
    known = joins().distributions
    return known.get(module, module) if module != "source" else module
