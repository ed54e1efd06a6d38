"""Read ``stacks.toml``: the versions of components such as CUDA and Open MPI, the compatible combinations of
versions, and the inputs for building each version.
"""

from functools import cache

import msgspec

from toolkit.knowledge.components import components
from toolkit.knowledge.reading import Row, Tables, read
from toolkit.model.solution import Component, Provider


class Packages(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Distribution packages that are necessary to compile software that uses a component (``build``), and to
    run this software (``run``).
    """

    build: tuple[str, ...] = ()
    run: tuple[str, ...] = ()


class SourceArchive(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A source archive. ``origin`` says where to download the archive, in the syntax of toolkit's lock files.
    ``sha256`` is the archive's hash.
    """

    file: str
    origin: str
    sha256: str


class Base(Row, frozen=True, kw_only=True):
    """A base image, which contains a release of a Linux distribution.

    ``image`` is the name of the image in its registry. ``brings`` lists components that the base already
    contains, so the solver does not add other versions of these components. If ``asked`` is true, the solver
    uses the base only if the recipe names this base.
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
    """Facts about the MPI library that a row of ``stacks.toml`` builds. toolkit expects to find the same
    facts in the built library.

    ``interfaces`` are the launch interfaces (``pmix``, ``pmi1``, ``pmi2``). ``launcher`` is the path of the
    MPI's mpirun. ``markers``, ``device``, ``own_shm`` and ``plugins`` are as in
    :class:`~toolkit.model.facts.ImageMpi`.
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
    """One version of a component from one provider, and the components that it needs.

    ``requires`` maps each component that the image must contain to the allowed versions. ``fits`` has the
    allowed versions of components that the image may contain, but need not contain. ``without`` lists
    components that the image must not contain. If ``asked`` is true, the solver uses the row only if the
    recipe names the component. Empty ``architectures`` means all architectures.

    The row lists the inputs of a build: ``debian`` packages; prebuilt ``wheels``; ``tools`` for compiling;
    the source ``archive``; options for its ``configure`` script. ``patches`` are files in ``recipes/patches``
    that the build applies to the source. ``environment`` sets variables of the finished image. If the solver
    refuses the row, the error message contains ``note``. ``speaks`` contains the facts about the MPI library
    that the row builds. ``driver`` has version bounds for the NVIDIA driver that a CUDA release needs.
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
    """The content of ``stacks.toml``: the base images, and the rows of components such as Open MPI.

    If the solver prefers several rows equally, it uses the row that comes first in ``stacks.toml``.
    """

    base: tuple[Base, ...]
    versions: dict[Component, tuple[Version, ...]] = msgspec.field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check that ``components.toml`` names every component that has rows.

        Raises:
            ValueError: ``components.toml`` lacks components; the message names these components.
        """
        if unknown := set(self.versions) - set(components()):
            raise ValueError(f"components.toml does not name {', '.join(sorted(unknown))}")

    def rows(self, component: Component) -> tuple[Version, ...]:
        """Return the rows of a component, or an empty tuple for an unknown component.

        toolkit derives the rows of ``base`` and ``python`` from the base images.
        """
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
        """Return the base image with this name; the name must be in ``stacks.toml``."""
        return next(base for base in self.base if base.name == name)

    @property
    def architectures(self) -> tuple[str, ...]:
        """All processor architectures for which a base image exists."""
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
    """Return the content of ``stacks.toml``."""
    return read("stacks", Stacks, _arrange)


def _arrange(raw: Tables) -> Tables:
    return {
        "base": raw.get("base", ()),
        "versions": {name: rows for name, rows in raw.items() if name != "base"},
    }
