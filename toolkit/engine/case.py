"""One launch to be judged, and how a rule finds the facts that it needs in it."""

from dataclasses import dataclass, field
from functools import cache
from typing import Literal

from toolkit.model.facts import HostFacts, ImageFacts
from toolkit.model.prediction import Mode, Plan, Request

State = Literal["known", "absent", "unknown", "moot"]


@dataclass(frozen=True, slots=True)
class Case:
    """This image on this host, asked for in this shape, launched with the words of this plan."""

    host: HostFacts
    image: ImageFacts
    """The image as its programs find it: in mode ``bind`` with the MPI of the host."""
    request: Request
    plan: Plan
    mounted_over: ImageFacts | None = None
    """The image as it stands, where something of the host was mounted over it."""
    _states: dict[str, State] = field(default_factory=dict, init=False, repr=False, compare=False)
    """What :meth:`state` has answered: the rules ask for the same facts again and again."""

    @property
    def original(self) -> ImageFacts:
        return self.mounted_over or self.image

    @property
    def mode(self) -> Mode:
        return self.plan.mode

    def cite(self, *names: str) -> tuple[str, ...]:
        """Return the lines of evidence for dotted names such as ``host.slurm.mpi_types``."""
        return tuple(self._cite(name) for name in names)

    def _cite(self, name: str) -> str:
        side, _, dotted = name.partition(".")
        facts = self.host if side == "host" else self.image
        where = "host" if side == "host" else "image"
        return f"{where}: {facts.cite(dotted)}"

    def state(self, name: str) -> State:
        """Tell whether a fact is there.

        ``absent`` is a fact too: it was looked for, and there is none. ``moot`` says that it is
        part of something absent, so that the question does not arise.
        """
        if (answered := self._states.get(name)) is None:
            answered = self._states[name] = self._state(*_parts(name))
        return answered

    def _state(self, side: str, parts: tuple[str, ...]) -> State:
        facts = self.host if side == "host" else self.image
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
        facts = self.host if side == "host" else self.image
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
