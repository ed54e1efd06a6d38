"""One launch to judge: its facts, its plan, and the methods through which rules read the facts."""

from dataclasses import dataclass, field
from functools import cache
from typing import Literal

from toolkit.engine.guarded import Guarded, Moot, Undecided, fields_read
from toolkit.model.facts import HostFacts, ImageFacts
from toolkit.model.prediction import Mode, Plan, Request

State = Literal["known", "absent", "unknown", "moot"]


@dataclass(frozen=True, slots=True)
class Case:
    """One launch: an image on a host, the requested job, and the plan of the launch.

    Rules read ``host``, ``image`` and ``original``. ``original`` is the image before the launch mounts the
    host's MPI. Reading an unknown field of ``host``, ``image`` or ``original`` raises
    :class:`Undecided`; a field with the value ``None`` is an absent fact. ``host_facts``,
    ``image_facts`` and ``original_facts`` contain the same facts and never raise :class:`Undecided`. Code
    that itself handles unknown facts reads ``host_facts``, ``image_facts`` or ``original_facts``.
    """

    host_facts: HostFacts
    image_facts: ImageFacts
    """The facts of the image that apply to the programs of this launch. If the programs load an MPI that the
    launch mounts from the host, the MPI in these facts is the host's MPI.
    """
    request: Request
    plan: Plan
    mounted_over: ImageFacts | None = None
    """The facts that toolkit read from the image's files, if the launch mounts a library of the host over the
    image; otherwise ``None``.
    """
    host: HostFacts = field(init=False, repr=False, compare=False)
    image: ImageFacts = field(init=False, repr=False, compare=False)
    original: ImageFacts = field(init=False, repr=False, compare=False)
    _states: dict[str, State] = field(default_factory=dict, init=False, repr=False, compare=False)
    """Cache for :meth:`state`, because rules need the same facts many times."""

    def __post_init__(self) -> None:
        image = Guarded(self.image_facts, self.image_facts, "image")
        over = self.mounted_over
        object.__setattr__(self, "host", Guarded(self.host_facts, self.host_facts, "host"))
        object.__setattr__(self, "image", image)
        object.__setattr__(self, "original", Guarded(over, over, "image") if over else image)

    @property
    def original_facts(self) -> ImageFacts:
        return self.mounted_over or self.image_facts

    @property
    def mode(self) -> Mode:
        return self.plan.mode

    def ask(self, *names: str, failed_only: bool = False) -> None:
        """Raise an exception if a fact is unknown or moot. ``names`` are dotted names, such as
        ``host.slurm.mpi_types``.

        Raise :class:`Undecided` for unknown facts. Raise :class:`Moot` for a field of something absent, such
        as the version of an MPI that the image does not have.

        With ``failed_only``, a fact counts as unknown only if toolkit tried to read the fact and failed.
        A facts file that an older toolkit wrote may lack a field. With ``failed_only``, such a missing field
        raises no exception, so toolkit can still predict launches from this file.
        """
        unknown: list[str] = []
        for name in names:
            state = self._states.get(name) or self.state(name)
            if state == "moot":
                raise Moot
            if state == "unknown" and (not failed_only or self.has_failed(name)):
                unknown.append(name)
        if unknown:
            raise Undecided(*unknown)

    def have(self, *names: str) -> None:
        """Raise an exception unless all facts with these dotted names are known.

        Raise :class:`Moot` for an absent or moot fact, and :class:`Undecided` for an unknown fact.
        """
        unknown: list[str] = []
        for name in names:
            state = self._states.get(name) or self.state(name)
            if state == "unknown":
                unknown.append(name)
            elif state != "known":
                raise Moot
        if unknown:
            raise Undecided(*unknown)

    @property
    def asked_facts(self) -> set[str]:
        """The dotted names of all facts that rules have read from this case."""
        views = (("host", self.host), ("image", self.image), ("image", self.original))
        return {*self._states, *(name for side, view in views for name in fields_read(view, side))}

    def cite(self, *names: str) -> tuple[str, ...]:
        """Return the lines of evidence for the facts with these dotted names, such as
        ``host.slurm.mpi_types``.
        """
        return tuple(self._cite(name) for name in names)

    def _cite(self, name: str) -> str:
        side, _, dotted = name.partition(".")
        return f"{side}: {self._side(side).cite(dotted)}"

    def _side(self, side: str) -> HostFacts | ImageFacts:
        return self.host_facts if side == "host" else self.image_facts

    def has_failed(self, name: str) -> bool:
        """Return whether toolkit tried to read a fact and failed."""
        side, _, dotted = name.partition(".")
        return dotted in self._side(side).unknown

    def state(self, name: str) -> State:
        """Return the state of a fact: ``known``, ``absent``, ``unknown`` or ``moot``.

        ``absent`` means that toolkit looked for the subject of the fact, such as an MPI, and found none. A
        ``moot`` fact is a field of an absent subject, such as the version of a missing MPI, so it has no
        value.
        """
        if (answered := self._states.get(name)) is None:
            answered = self._states[name] = self._state(*_parts(name))
        return answered

    def _state(self, side: str, parts: tuple[str, ...]) -> State:
        facts = self._side(side)
        value: object = facts
        for depth, part in enumerate(parts, start=1):
            if depth > 1 and isinstance(value, tuple) and value:
                value = value[0]  # the name ``host.mpis.soname`` is about the first MPI in ``host.mpis``
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
        """Return the reason why a fact is missing, as one line."""
        side, parts = _parts(name)
        facts = self._side(side)
        for depth in range(len(parts), 0, -1):
            dotted = ".".join(parts[:depth])
            if dotted in facts.unknown:
                return f"{side}.{dotted}: {facts.unknown[dotted]}"
        return f"{name}: the probe did not read this fact"


@cache
def _parts(name: str) -> tuple[str, tuple[str, ...]]:
    """Split the dotted name of a fact into its side (``host`` or ``image``) and its fields."""
    side, _, rest = name.partition(".")
    return side, tuple(rest.split("."))
