"""Wrap the facts of a host or an image, so that a rule that reads an unknown fact raises an exception."""

from collections.abc import Callable, Collection, Iterator
from typing import ParamSpec, TypeVar

from toolkit.model.facts import ContainerRuntime, HostFacts, ImageFacts, SlurmFacts
from toolkit.model.mpifacts import HostMpi, ImageMpi

_P = ParamSpec("_P")
_T = TypeVar("_T")


class Undecided(Exception):
    """The result of a rule depends on unknown facts; ``names`` are the dotted names of these facts."""

    @property
    def names(self) -> tuple[str, ...]:
        return self.args


class Moot(Exception):
    """A rule reads a field of something absent, such as the version of a missing MPI, so the rule does not
    apply.
    """


def attempt(question: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T | Undecided:
    """Return the result of a function; if the function raises :class:`Undecided`, return the exception, so
    that the caller can first try another check.
    """
    try:
        return question(*args, **kwargs)
    except Undecided as undecided:
        return undecided


def settle(answer: _T | Undecided) -> _T:
    """Return the result of :func:`attempt`, or raise the result if it is an :class:`Undecided` exception."""
    if isinstance(answer, Undecided):
        raise answer
    return answer


_OPTIONAL: dict[type, Collection[str]] = {
    # The rule image-mpi-not-measured reports an MPI of unknown release. In the knowledge tables, a row with a
    # version range does not match such an MPI.
    ImageMpi: frozenset(
        {"version", "launcher", "library_string", "prefix", "built_for", "pmix", "fabric_asked"}
    ),
    # If one of these fields of a host's MPI is unknown, no row of the knowledge tables matches this MPI. The
    # rules about launchers and mounted MPIs check these fields for ``None``.
    HostMpi: frozenset(
        {"version", "leaks", "pmix", "prefix", "library", "interfaces", "device", "needs", "components"}
        | {"components_need", "places", "folders", "plugins", "relocatable"}
    ),
    # Rules accept an unknown number of nodes, because sbatch itself refuses more nodes than the cluster has.
    SlurmFacts: frozenset({"nodes"}),
    # If the runtime's behaviour depends on its release, an empty release makes ``rules.runtime.ask_release``
    # raise ``Undecided``.
    # For each setting that toolkit did not read, toolkit assumes the runtime's default.
    ContainerRuntime: frozenset({"version", "settings"}),
}
"""Class → its fields that raise no exception if their value is ``None``. In some of these fields, ``None``
means that something does not exist: if ``launcher`` is ``None``, the MPI has no mpirun. For the other fields,
each rule that reads the field checks for ``None``.
"""
_PARTS = {ImageMpi, HostMpi, SlurmFacts, ContainerRuntime}


class Guarded:
    """Facts that raise :class:`Undecided` when a rule reads an unknown field.

    ``book`` contains all facts of a host or an image. ``part`` is ``book`` or a struct in ``book``, such as
    the facts about Slurm. In the dotted name ``host.slurm.version``, ``side`` is ``host`` and ``prefix`` is
    ``slurm.``; for the fields of ``book`` itself, ``prefix`` is empty.
    """

    def __init__(self, book: HostFacts | ImageFacts, part: object, side: str, prefix: str = "") -> None:
        self._book, self._part, self._side, self._prefix = book, part, side, prefix
        self._optional = _OPTIONAL.get(type(part), ())

    def __getattr__(self, field: str) -> object:
        value = getattr(self._part, field)
        dotted, book = self._prefix + field, self._book
        if field not in self._optional and (
            dotted in book.unknown or (value is None and dotted not in book.absent)
        ):
            raise Undecided(f"{self._side}.{dotted}")
        if type(value) in _PARTS:
            value = self._inner(value, dotted)
        elif isinstance(value, tuple) and value and type(value[0]) in _PARTS:
            value = tuple(self._inner(one, dotted) for one in value)
        self.__dict__[field] = value
        return value

    def _inner(self, part: object, name: str) -> "Guarded":
        return Guarded(self._book, part, self._side, f"{name}.")

    def __eq__(self, other: object) -> bool:
        return bool(self._part == (other._part if isinstance(other, Guarded) else other))

    __hash__ = None  # type: ignore[assignment]


def fields_read(part: object, name: str) -> Iterator[str]:
    """Yield the dotted names of the fields that rules have read from ``part``, a :class:`Guarded` with the
    dotted name ``name``.
    """
    for field, value in vars(part).items():
        if field.startswith("_"):
            continue
        yield f"{name}.{field}"
        for one in value if isinstance(value, tuple) else (value,):
            if isinstance(one, Guarded):
                yield from fields_read(one, f"{name}.{field}")
