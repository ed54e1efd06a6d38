"""The real outcome of a small job in one launch mode, beside its prediction."""

import msgspec

from toolkit.model.finding import Finding
from toolkit.model.prediction import Mode, Outcome

SCHEMA = "toolkit.live/1"


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """A message that was sent and returned: its size in bytes, and the seconds for one direction.

    ``between`` is ``nodes``, or ``node`` for two ranks of one node. The value is the fastest of many
    exchanges.
    """

    between: str
    bytes: int
    seconds: float
    whole: bool

    @property
    def rate(self) -> float:
        """Return the rate in bytes a second."""
        return self.bytes / self.seconds if self.seconds > 0 else 0.0


class Transport(msgspec.Struct, frozen=True, kw_only=True):
    """How messages were sent between nodes, as the MPI library reports it: the transport, and the line
    that names it.
    """

    name: str
    evidence: str


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """The output of the ranks of a trial.

    For each rank, ``sizes`` has the world size that it found, ``hosts`` its node, and ``sums`` whether its
    sum is right. ``ended`` is the number of ranks that finished. ``program`` is the trial that was run,
    ``python`` or ``c``.
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
    """One launch mode: prediction and observation side by side.

    ``observed`` is ``None`` if nothing was run, with the reason in ``because``. ``agrees`` is ``None`` if
    either is unknown. ``missed_fabric`` says that the nodes have a fast network and the messages took another
    network; ``None`` if that is unknown.
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
        """Return whether it ran and no failure was predicted."""
        return self.observed == "ok" and self.agrees is not False


class Live(msgspec.Struct, frozen=True, kw_only=True):
    """All launch modes that were tried with one image in one place."""

    schema: str = SCHEMA
    place: str
    image: str
    digest: str | None
    nodes: int
    ranks_per_node: int
    trials: tuple[Trial, ...]

    @property
    def good(self) -> bool:
        """Return whether every mode ran as predicted, with right results."""
        return all(trial.good for trial in self.trials)
