"""One launch to be judged, and how a rule asks for the facts that it needs."""

from dataclasses import dataclass, field
from functools import cache
from typing import Literal

from toolkit.model.facts import ContainerRuntime, HostFacts, HostMpi, ImageFacts, ImageMpi, SlurmFacts
from toolkit.model.prediction import Mode, Plan, Request

State = Literal["known", "absent", "unknown", "moot"]


class Undecided(Exception):
    """What a rule decides turns on facts that are unknown; ``names`` are their dotted names."""

    def __init__(self, *names: str) -> None:
        super().__init__(", ".join(names))
        self.names = names


class Moot(Exception):
    """What a rule asks about is absent, so that it has nothing to say."""


@dataclass(frozen=True, slots=True)
class Case:
    """One launch: this image on this host, for this request, with the words of this plan.

    Rules read ``host``, ``image`` and ``original``. Reading a field there raises :class:`Undecided` if the
    fact is unknown; ``None`` means that it is absent. ``host_facts``, ``image_facts`` and ``original_facts``
    are the same facts as they were read, for code to which an unknown fact makes no difference.
    """

    host_facts: HostFacts
    image_facts: ImageFacts
    """The image as its programs find it: in mode ``bind`` with the MPI of the host."""
    request: Request
    plan: Plan
    mounted_over: ImageFacts | None = None
    """The image as it was read, if something of the host is mounted over it."""
    host: HostFacts = field(init=False, repr=False, compare=False)
    image: ImageFacts = field(init=False, repr=False, compare=False)
    original: ImageFacts = field(init=False, repr=False, compare=False)
    _states: dict[str, State] = field(default_factory=dict, init=False, repr=False, compare=False)
    """The answers of :meth:`state`, because the rules ask for the same facts again and again."""

    def __post_init__(self) -> None:
        for name, side, facts in (
            ("host", "host", self.host_facts),
            ("image", "image", self.image_facts),
            ("original", "image", self.original_facts),
        ):
            object.__setattr__(self, name, _Guarded(facts, facts, side))

    @property
    def original_facts(self) -> ImageFacts:
        return self.mounted_over or self.image_facts

    @property
    def mode(self) -> Mode:
        return self.plan.mode

    def ask(self, *names: str, failed_only: bool = False) -> None:
        """Continue only if each of these facts is known or absent.

        Raise :class:`Undecided` for those that are unknown, and :class:`Moot` if one is part of something
        absent. With ``failed_only`` a fact counts as unknown only if reading it failed: facts that an older
        toolkit saved were never asked for, which is no reason to withhold every prediction.
        """
        states = [self.state(name) for name in names]
        if "moot" in states:
            raise Moot
        unknown = tuple(name for name, state in zip(names, states, strict=True) if state == "unknown")
        if failed_only:
            unknown = tuple(name for name in unknown if self._failed(name))
        if unknown:
            raise Undecided(*unknown)

    def have(self, *names: str) -> None:
        """Continue only if each of these facts is there: raise :class:`Moot` if one is absent."""
        if any(self.state(name) in {"absent", "moot"} for name in names):
            raise Moot
        self.ask(*names)

    def cite(self, *names: str) -> tuple[str, ...]:
        """Return the lines of evidence for dotted names such as ``host.slurm.mpi_types``."""
        return tuple(self._cite(name) for name in names)

    def _cite(self, name: str) -> str:
        side, _, dotted = name.partition(".")
        return f"{side}: {self._side(side).cite(dotted)}"

    def _side(self, side: str) -> HostFacts | ImageFacts:
        return self.host_facts if side == "host" else self.image_facts

    def _failed(self, name: str) -> bool:
        side, _, dotted = name.partition(".")
        return dotted in self._side(side).unknown

    def state(self, name: str) -> State:
        """Say whether a fact is known.

        ``absent`` is a fact too: it was looked for, and there is none. A ``moot`` fact is part of something
        absent, so that the question does not arise.
        """
        if (answered := self._states.get(name)) is None:
            answered = self._states[name] = self._state(*_parts(name))
        return answered

    def _state(self, side: str, parts: tuple[str, ...]) -> State:
        facts = self._side(side)
        value: object = facts
        for depth, part in enumerate(parts, start=1):
            value = getattr(value, part, None)
            dotted = ".".join(parts[:depth])
            if dotted in facts.unknown:
                return "unknown"
            if value is None:
                if dotted not in facts.absent:
                    return "unknown"
                return "absent" if depth == len(parts) else "moot"
        return "known"

    def why_unknown(self, name: str) -> str:
        """Say in one line why a fact is missing."""
        side, parts = _parts(name)
        facts = self._side(side)
        for depth in range(len(parts), 0, -1):
            dotted = ".".join(parts[:depth])
            if dotted in facts.unknown:
                return f"{side}.{dotted}: {facts.unknown[dotted]}"
        return f"{name}: it was not asked"


@cache
def _parts(name: str) -> tuple[str, tuple[str, ...]]:
    """Return the side and the fields of a dotted name."""
    side, _, rest = name.partition(".")
    return side, tuple(rest.split("."))


_OPTIONAL: dict[type, frozenset[str]] = {
    # The rule image-mpi-not-measured asks for the release; unknown, it is in no range of another rule.
    ImageMpi: frozenset(
        {"version", "launcher", "library_string", "prefix", "built_for", "pmix", "fabric_asked"}
    ),
    # The launcher of an unknown release has no row, which the rules say.
    HostMpi: frozenset(
        {"version", "leaks", "pmix", "prefix", "interfaces", "device", "needs", "components"}
        | {"components_need", "places", "folders", "plugins", "relocatable"}
    ),
}
"""Fields in which ``None`` is an answer: there is none, or every rule knows what to do without it."""


class _Guarded:
    """Facts whose fields raise :class:`Undecided` if they are unknown; a field is looked up once."""

    def __init__(self, book: HostFacts | ImageFacts, part: object, name: str) -> None:
        self._book, self._part, self._name = book, part, name

    def __getattr__(self, field: str) -> object:
        value = getattr(self._part, field)
        name = f"{self._name}.{field}"
        dotted = name.partition(".")[2]
        if field not in _OPTIONAL.get(type(self._part), ()) and (
            dotted in self._book.unknown or (value is None and dotted not in self._book.absent)
        ):
            raise Undecided(name)
        guarded = self._guarded(value, name)
        self.__dict__[field] = guarded
        return guarded

    def _guarded(self, value: object, name: str) -> object:
        if isinstance(value, (ImageMpi, HostMpi, SlurmFacts, ContainerRuntime)):
            return _Guarded(self._book, value, name)
        if isinstance(value, tuple):
            return tuple(self._guarded(one, name) for one in value)
        return value

    def __eq__(self, other: object) -> bool:
        return self._part == (other._part if isinstance(other, _Guarded) else other)

    __hash__ = None  # type: ignore[assignment]
