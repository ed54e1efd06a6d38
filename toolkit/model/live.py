"""For each launch mode, the predicted outcome, and the outcome of a trial (a small job in this mode)."""

import msgspec

from toolkit.model.finding import Finding
from toolkit.model.prediction import Mode, Outcome

SCHEMA = "toolkit.live/1"


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """A message that a rank sent to another rank and received back: its size in bytes, and the time in
    seconds for one direction.

    ``between`` is ``nodes`` for two ranks on different nodes, or ``node`` for two ranks on the same node.
    ``seconds`` is the time of the fastest of many exchanges. ``whole`` is true if the message arrived
    unchanged.
    """

    between: str
    bytes: int
    seconds: float
    whole: bool

    @property
    def rate(self) -> float:
        """Return the transfer rate of the message in bytes per second."""
        return self.bytes / self.seconds if self.seconds > 0 else 0.0


class Transport(msgspec.Struct, frozen=True, kw_only=True):
    """The transport that carries messages between nodes: its name, and the line of output in which the MPI
    library names the transport.
    """

    name: str
    evidence: str


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """The values that the ranks of a trial (a small job in one launch mode) printed.

    Each rank may report its world size (in ``sizes``), its node (in ``hosts``), and whether it computed the
    right sum (in ``sums``). ``ended`` is the number of ranks that finished. ``not_loaded`` is the message
    about a library that a rank could not load. ``library`` is the version text of the MPI library.
    ``program`` is the language of the trial program:
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
    """The prediction and the observed outcome of one launch mode.

    ``because`` is the reason for the prediction. ``observed`` is ``None`` if toolkit did not run a trial.
    ``agrees`` is whether the prediction was right, or ``None`` if the predicted or the observed outcome is
    unknown. ``missed_fabric`` is true if the nodes have a fast network but the messages used another network;
    ``None`` if unknown.
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
        """Return whether the trial worked, and the prediction was right or unknown."""
        return self.observed == "ok" and self.agrees is not False


class Live(msgspec.Struct, frozen=True, kw_only=True):
    """The trials of one image on one host or cluster, one for each launch mode that toolkit tried."""

    schema: str = SCHEMA
    place: str
    image: str
    digest: str | None
    nodes: int
    ranks_per_node: int
    trials: tuple[Trial, ...]

    @property
    def good(self) -> bool:
        """Return whether every trial worked, and every prediction was right or unknown."""
        return all(trial.good for trial in self.trials)
