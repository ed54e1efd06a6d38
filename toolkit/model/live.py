"""What a small job in one launch mode really did, beside what was predicted of it."""

import msgspec

from toolkit.model.finding import Finding
from toolkit.model.prediction import Mode, Outcome

SCHEMA = "toolkit.live/1"


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """A message that went there and back: its size in bytes, and the seconds that one way took.

    ``between`` is ``nodes``, or ``node`` for two ranks of one. The fastest of many counts.
    """

    between: str
    bytes: int
    seconds: float
    whole: bool

    @property
    def rate(self) -> float:
        """Return bytes a second."""
        return self.bytes / self.seconds if self.seconds > 0 else 0.0


class Transport(msgspec.Struct, frozen=True, kw_only=True):
    """How messages went between nodes, as the MPI library says: its name, and the line that says so."""

    name: str
    evidence: str


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """What the ranks of a trial wrote.

    ``sizes`` has the size of the world that each rank found, ``hosts`` where those ran, ``sums``
    whether the sum that each rank got is right, ``ended`` how many came to their end. ``program`` is
    the trial that was run, ``python`` or ``c``.
    """

    sizes: tuple[int, ...] = ()
    hosts: tuple[str, ...] = ()
    sums: tuple[bool, ...] = ()
    ended: int = 0
    not_loaded: str = ""
    library: str = ""
    program: str = ""
    messages: tuple[Message, ...] = ()
    transport: Transport | None = None


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """One mode: prediction and observation side by side.

    ``observed`` is ``None`` where nothing was run, with the reason in ``because``. ``agrees`` is
    ``None`` where the one or the other is not known. ``missed_fabric`` says that the nodes have a fast
    network and the messages took another; ``None`` where that is not known.
    """

    mode: Mode
    predicted: Outcome
    because: str
    observed: Outcome | None = None
    agrees: bool | None = None
    seen: Seen = Seen()
    missed_fabric: bool | None = None
    findings: tuple[Finding, ...] = ()
    job: str = ""
    seconds: float = 0.0

    @property
    def good(self) -> bool:
        """Tell whether it ran, and nobody had said otherwise."""
        return self.observed == "ok" and self.agrees is not False


class Live(msgspec.Struct, frozen=True, kw_only=True):
    """All modes that were tried with one image in one place."""

    schema: str = SCHEMA
    place: str
    image: str
    digest: str | None
    nodes: int
    ranks_per_node: int
    trials: tuple[Trial, ...]

    @property
    def good(self) -> bool:
        """Tell whether every mode ran as predicted, and right."""
        return all(trial.good for trial in self.trials)
