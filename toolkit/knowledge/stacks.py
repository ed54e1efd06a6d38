"""``stacks.toml``: the components that an image can have, their combinations, and what building them
needs.
"""

from functools import cache

import msgspec

from toolkit.knowledge.components import components
from toolkit.knowledge.reading import Row, Tables, read
from toolkit.model.solution import Component, Provider


class Packages(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Packages of the distribution: to build against a component, and to run with it."""

    build: tuple[str, ...] = ()
    run: tuple[str, ...] = ()


class SourceArchive(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A source archive: its origin as a lock writes it; the hash identifies it."""

    file: str
    origin: str
    sha256: str


class Base(Row, frozen=True, kw_only=True):
    """A release of a distribution to start from.

    ``image`` is the published image. ``brings`` are components that the row already contains; no other rows
    of these components can be combined with it. ``asked``: chosen only if a recipe names the component.
    """

    name: str
    image: str
    release: str
    python: str
    glibc: str
    architectures: tuple[str, ...]
    brings: tuple[Component, ...] = ()
    asked: bool = False


class Speech(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the inspector would find in an MPI library that was built from a row.

    ``interfaces`` are the launch interfaces (``pmix``, ``pmi1``, ``pmi2``), ``launcher`` its mpirun,
    ``markers``, ``device``, ``own_shm`` and ``plugins`` as in :class:`~toolkit.model.facts.ImageMpi`.
    """

    interfaces: tuple[str, ...]
    soname: str
    launcher: str = "/usr/bin/mpirun"
    plugins: bool = False
    markers: tuple[str, ...] = ()
    device: str | None = None
    own_shm: bool | None = None
    components: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)


class Version(Row, frozen=True, kw_only=True):
    """One version of a component from one provider, and what it needs.

    ``requires``: components that the image must have, with these versions. ``fits``: versions that components
    must have if they are present. ``without``: components that must be absent. ``asked``: chosen only if a
    recipe asks for the component. ``architectures``: all, if empty.

    The inputs of a build: ``debian`` packages; ``wheels``, requirements that pip installs unchanged;
    ``tools``, requirements that its compilation needs; ``archive`` and ``configure``, the words for its
    configure script; ``environment``, variables of the finished image. ``patches`` are files of
    ``recipes/patches`` that its source needs; ``note`` is added to a refusal. ``speaks`` is of an MPI
    library, ``driver`` the bounds of a CUDA release for NVIDIA's driver.
    """

    version: str
    provider: Provider
    requires: dict[Component, str | tuple[str, ...]] = msgspec.field(default_factory=dict)
    fits: dict[Component, str | tuple[str, ...]] = msgspec.field(default_factory=dict)
    without: tuple[Component, ...] = ()
    asked: bool = False
    architectures: tuple[str, ...] = ()
    debian: Packages = Packages()
    wheels: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    archive: SourceArchive | None = None
    configure: tuple[str, ...] = ()
    environment: dict[str, str] = msgspec.field(default_factory=dict)
    speaks: Speech | None = None
    driver: str = ""
    patches: tuple[str, ...] = ()
    note: str = ""


class Stacks(msgspec.Struct, frozen=True, kw_only=True):
    """The whole file: the bases, and the rows of each other component.

    With equal preference, the first row is chosen.
    """

    base: tuple[Base, ...]
    versions: dict[Component, tuple[Version, ...]] = msgspec.field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse rows of a component that ``components.toml`` does not name.

        Raises:
            ValueError: naming the component.
        """
        if unknown := set(self.versions) - set(components()):
            raise ValueError(f"components.toml does not name {', '.join(sorted(unknown))}")

    def rows(self, component: Component) -> tuple[Version, ...]:
        """Return the rows of a component; the rows of ``base`` and ``python`` follow from the bases."""
        if component == "base":
            return tuple(_base_row(base) for base in self.base)
        if component == "python":
            pythons = {base.python: base for base in reversed(self.base)}
            return tuple(
                Version(version=version, provider="base", source=base.source)
                for version, base in pythons.items()
            )
        return self.versions.get(component, ())

    def base_of(self, name: str) -> Base:
        """Return the row of a known base."""
        return next(base for base in self.base if base.name == name)

    @property
    def architectures(self) -> tuple[str, ...]:
        """All architectures that have a base."""
        return tuple(dict.fromkeys(a for base in self.base for a in base.architectures))


def _base_row(base: Base) -> Version:
    return Version(
        version=base.name,
        provider="base",
        requires={"python": base.python},
        asked=base.asked,
        architectures=base.architectures,
        source=base.source,
    )


@cache
def stacks() -> Stacks:
    """Return the table of stacks."""
    return read("stacks", Stacks, _arrange)


def _arrange(raw: Tables) -> Tables:
    return {
        "base": raw.get("base", ()),
        "versions": {name: rows for name, rows in raw.items() if name != "base"},
    }
