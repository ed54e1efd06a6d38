"""The measurements of a run, and the ratios of the cases that the benchmark compares."""

import statistics

import msgspec

from tests.benchmarks.train.cases import ALLREDUCE, COMPARISONS, Comparison
from tests.benchmarks.train.peers import PEER_COMPARISONS


class Figure(msgspec.Struct, frozen=True):
    """One measurement of a case in a run or turn.

    ``rate`` is in images per second, or in milliseconds for allreduce cases. ``load`` is the machine's load.
    """

    rate: float
    load: float
    accuracy: float | None = None


class Result(msgspec.Struct, frozen=True, kw_only=True):
    schema: str = "toolkit.bench.train/1"
    image: str
    started: str
    processors: int
    figures: dict[str, list[Figure]]

    @property
    def comparisons(self) -> list[Comparison]:
        return [one for one in (*COMPARISONS, *PEER_COMPARISONS) if {one.ours, one.theirs} <= {*self.figures}]

    def rate(self, name: str) -> float:
        return statistics.median(one.rate for one in self.figures[name])

    def ratio(self, one: Comparison) -> float:
        """Return the speed of ``ours`` divided by the speed of ``theirs``: the median over all turns.

        If one case has more measurements than the other, its measurements are divided into as many groups as
        the other case has measurements. The ratios then use the median of each group.
        """
        ours, theirs = self.figures[one.ours], self.figures[one.theirs]
        turns = min(len(ours), len(theirs))
        pairs = zip(_medians(ours, turns), _medians(theirs, turns), strict=True)
        return statistics.median(mine / other for mine, other in pairs)

    def encoded(self) -> bytes:
        head = {
            "schema": self.schema,
            "ratios": {one.title: round(self.ratio(one), 3) for one in self.comparisons},
            "allreduce_ms": {name: round(self.rate(name), 3) for name in ALLREDUCE if name in self.figures},
            "raw": msgspec.to_builtins(self),
        }
        return msgspec.json.format(msgspec.json.encode(head), indent=2)


def _medians(figures: list[Figure], parts: int) -> list[float]:
    size = len(figures) // parts
    return [
        statistics.median(one.rate for one in figures[part * size : (part + 1) * size])
        for part in range(parts)
    ]
