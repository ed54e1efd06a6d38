"""The figures of a run, and the ratios that decide whether it passes."""

import statistics

import msgspec

from tests.benchmarks.train.cases import ALLREDUCE, COMPARISONS, Comparison


class Figure(msgspec.Struct, frozen=True):
    """Images a second (or milliseconds) of a case, of one run or one turn, and its final accuracy."""

    rate: float
    load: float
    accuracy: float | None = None


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """One run; ``figures`` contains every figure by the name of its case, in the order of the rounds."""

    schema: str = "toolkit.bench.train/1"
    image: str
    started: str
    processors: int
    figures: dict[str, list[Figure]]

    def rate(self, name: str) -> float:
        """Return the median of a case."""
        return statistics.median(one.rate for one in self.figures[name])

    def ratio(self, one: Comparison) -> float:
        """Return how many times as fast ``ours`` is: the median over the turns in which both ran.

        If one case ran more often than the other, the median of each of its rounds is used.
        """
        ours, theirs = self.figures[one.ours], self.figures[one.theirs]
        turns = min(len(ours), len(theirs))
        pairs = zip(_medians(ours, turns), _medians(theirs, turns), strict=True)
        return statistics.median(mine / other for mine, other in pairs)

    def encoded(self) -> bytes:
        """Return the JSON of the result file: the ratios first, then everything."""
        head = {
            "schema": self.schema,
            "ratios": {one.title: round(self.ratio(one), 3) for one in COMPARISONS},
            "allreduce_ms": {name: round(self.rate(name), 3) for name in ALLREDUCE},
            "raw": msgspec.to_builtins(self),
        }
        return msgspec.json.format(msgspec.json.encode(head), indent=2)


def _medians(figures: list[Figure], parts: int) -> list[float]:
    """Return the median rate of each of N equal parts, in order."""
    size = len(figures) // parts
    return [
        statistics.median(one.rate for one in figures[part * size : (part + 1) * size])
        for part in range(parts)
    ]
