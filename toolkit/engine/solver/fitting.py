"""Compare two rows of ``stacks.toml``, and give the reason if the rows are not compatible.

A row is one version of one component from one provider, such as Debian or PyPI.
"""

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import NamedTuple

from toolkit.knowledge.stacks import Stacks, Version
from toolkit.model.solution import Component
from toolkit.versions import meets

_PLURAL = {"works": "work", "is": "are", "brings": "bring", "needs": "need"}


class Fact(NamedTuple):
    """A sentence about one row of ``stacks.toml``. The sentence begins with component and version; ``text``
    is the rest of the sentence.
    """

    component: Component
    version: str
    text: str

    def __str__(self) -> str:
        return f"{name_version(self.component, self.version)} {self.text}"


def fits(component: Component, row: Version, wish: str | tuple[str, ...]) -> bool:
    """Return whether a row of ``stacks.toml`` satisfies a constraint. If ``wish`` has several constraints,
    one of them is enough.

    A constraint on a base image is its name or a pattern for names. Other constraints are version bounds,
    which may follow the name of a provider: ``source 4.2.2``.
    """
    wishes = (wish,) if isinstance(wish, str) else wish
    return any(_matches(component, row, one) for one in wishes)


def _matches(component: Component, row: Version, wish: str) -> bool:
    if component == "base":
        return fnmatchcase(row.version, wish)
    provider, _, version = wish.rpartition(" ")
    return provider in ("", row.provider) and meets(row.version, version)


def objection(component: Component, row: Version, other: Component, other_row: Version) -> Fact | None:
    """Return the reason why two rows of ``stacks.toml`` are not compatible; ``None`` for compatible rows."""
    return _refuses(component, row, other, other_row) or _refuses(other, other_row, component, row)


def brought(
    table: Stacks, component: Component, row: Version, other: Component, other_row: Version
) -> Fact | None:
    """Return a conflict if one row is a base image that already contains the other row's component; otherwise
    ``None``. The solver must not add a second copy of a component.
    """
    for one, base, another, on_it in ((component, row, other, other_row), (other, other_row, component, row)):
        if one == "base" and another in table.base_of(base.version).brings and on_it.provider != "published":
            return Fact("base", base.version, f"has its own {another}")
    return None


def only_for(component: Component, row: Version) -> Fact:
    """Return a :class:`Fact`: the version ``row`` of ``component`` exists only for some architectures."""
    return Fact(component, row.version, f"exists only for {' and '.join(row.architectures)}{_note(row)}")


def excludes(component: Component, row: Version, other: Component) -> Fact:
    """Return a :class:`Fact`: the version ``row`` of ``component`` excludes the component ``other``."""
    return Fact(component, row.version, f"from {row.provider} cannot be combined with {other}{_note(row)}")


def needs_asking(component: Component, row: Version, other: Component) -> Fact:
    """Return a :class:`Fact`: the version ``row`` of ``component`` needs the component ``other``, which the
    recipe does not name. The solver adds some components only if the recipe names them.
    """
    return Fact(component, row.version, f"needs {other}, which the recipe does not name")


def name_version(component: Component, version: str) -> str:
    """Return a component and its version for a sentence, such as ``openmpi 4.1.4``; for a base, return only
    its name.
    """
    return version if component == "base" else f"{component} {version}"


def as_sentences(facts: Iterable[Fact]) -> tuple[str, ...]:
    """Return facts as sentences. One sentence lists all versions of a component that have the same fact."""
    versions: dict[tuple[Component, str], list[str]] = {}
    for fact in facts:
        versions.setdefault((fact.component, fact.text), []).append(fact.version)
    return tuple(
        str(Fact(component, found[0], says))
        if len(found) == 1
        else f"{name_version(component, _enumerate_words(found, 'and'))} {_several(says)}"
        for (component, says), found in versions.items()
    )


def _refuses(component: Component, row: Version, other: Component, other_row: Version) -> Fact | None:
    for wish in (row.requires.get(other), row.fits.get(other)):
        if wish is not None and not fits(other, other_row, wish):
            what = "" if other == "base" else f"{other} "
            return Fact(component, row.version, f"works only with {what}{_bounds(wish)}")
    return excludes(component, row, other) if other in row.without else None


def _note(row: Version) -> str:
    return f": {row.note}" if row.note else ""


def _bounds(wish: str | tuple[str, ...]) -> str:
    """Return a row's version constraint as text, such as ``3.9, 3.10 or 3.11`` or ``4.2.2 from source``."""
    parts = [w.rpartition(" ") for w in ((wish,) if isinstance(wish, str) else wish)]
    words = [f"{version} from {provider}" if provider else version for provider, _, version in parts]
    return _enumerate_words([word.removeprefix("* ") for word in words], "or")


def _enumerate_words(words: list[str], conjunction: str) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {conjunction} {words[-1]}"


def _several(text: str) -> str:
    return " ".join(_PLURAL.get(word, word) for word in text.split(" "))
