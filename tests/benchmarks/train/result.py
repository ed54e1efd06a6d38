"""The measurements of a run, and the ratios of the cases that the benchmark compares."""

import statistics

import msgspec

from tests.benchmarks.train.cases import ALLREDUCE, COMPARISONS, Comparison
from tests.benchmarks.train.peers import PEER_COMPARISONS


class Figure(msgspec.Struct, frozen=True):
    """One measurement of a case in one run or turn: images per second (or milliseconds), and the final
    accuracy.
    """

    rate: float
    load: float
    accuracy: float | None = None


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """Results of one run; ``figures`` has all measurements by case name, in the order of the rounds."""

    schema: str = "toolkit.bench.train/1"
    image: str
    started: str
    processors: int
    figures: dict[str, list[Figure]]

    @property
    def comparisons(self) -> list[Comparison]:
        """The comparisons whose two cases were both measured."""
        return [one for one in (*COMPARISONS, *PEER_COMPARISONS) if {one.ours, one.theirs} <= {*self.figures}]

    def rate(self, name: str) -> float:
        """Return the median rate of a case."""
        return statistics.median(one.rate for one in self.figures[name])

    def ratio(self, one: Comparison) -> float:
        """Return how many times as fast ``ours`` is: the median of the ratios over the turns of both cases.

        If one case has more measurements than the other, its measurements are divided into as many groups as
        the other case has measurements. The ratios then use the median of each group.
        """
        ours, theirs = self.figures[one.ours], self.figures[one.theirs]
        turns = min(len(ours), len(theirs))
        pairs = zip(_medians(ours, turns), _medians(theirs, turns), strict=True)
        return statistics.median(mine / other for mine, other in pairs)

    def encoded(self) -> bytes:
        """Return the JSON text of the result file: first the ratios, then all measurements."""
        head = {
            "schema": self.schema,
            "ratios": {one.title: round(self.ratio(one), 3) for one in self.comparisons},
            "allreduce_ms": {name: round(self.rate(name), 3) for name in ALLREDUCE if name in self.figures},
            "raw": msgspec.to_builtins(self),
        }
        return msgspec.json.format(msgspec.json.encode(head), indent=2)


def _medians(figures: list[Figure], parts: int) -> list[float]:
    """Return the median rate of each of ``parts`` equal parts, in order."""
    size = len(figures) // parts
    return [
        statistics.median(one.rate for one in figures[part * size : (part + 1) * size])
        for part in range(parts)
    ]
